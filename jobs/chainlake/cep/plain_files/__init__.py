"""Reads events from files on the command line, without a source definition."""
