"""Patterns whose days form a chain: what their matches use up is not there for the matches of later days."""
