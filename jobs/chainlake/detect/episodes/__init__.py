"""Episodes of a lake: made from the published matches, day by day, right after these."""
