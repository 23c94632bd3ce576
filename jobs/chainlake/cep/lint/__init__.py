"""Finds everything that is wrong or doubtful in a pattern file, without events."""
