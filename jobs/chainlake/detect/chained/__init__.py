"""Patterns whose days form a chain: what their matches use up is not available to matches of later days."""
