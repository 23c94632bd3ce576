"""Conditions as source text of a kernel, and what the generator asks about the events."""
