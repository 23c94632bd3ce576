"""Functions that are called with many pairs at a time, each pair once: what a condition costs most is done last."""
