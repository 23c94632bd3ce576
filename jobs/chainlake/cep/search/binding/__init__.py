"""Name by name from nothing to a match, in NumPy: events, sets, what must not be there, what is gathered last."""
