"""Columns of values with null, and everything that the language computes with them.

Functions are in ``operations``, aggregates of repeated names in ``aggregates``.
"""
