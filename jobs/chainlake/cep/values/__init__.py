"""Columns of values with null, and everything that the language computes with them."""
