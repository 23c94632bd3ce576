"""The gate of match tables, and the measures of matches that it tests."""
