"""The search itself: steps of a plan over arrays of events, level by level, on NumPy or as machine code."""
