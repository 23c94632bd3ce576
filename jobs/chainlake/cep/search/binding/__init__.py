"""Builds matches name by name, in NumPy: events, sets, negation, and what is gathered last."""
