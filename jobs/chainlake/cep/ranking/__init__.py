"""The best matches: their scores, the periods in which they compete, which are kept. Pure functions on arrays."""
