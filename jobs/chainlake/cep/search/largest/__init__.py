"""Matches that are compared with one another: neighbours found twice, and those that larger ones contain."""
