"""Matches that are compared with one another: duplicates among neighbours, and matches that larger ones contain."""
