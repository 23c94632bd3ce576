"""The best matches: scores, periods in which matches compete, and which of them are kept. Pure functions on arrays."""
