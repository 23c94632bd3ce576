"""Explains to people what a pattern means and where a search loses candidates."""
