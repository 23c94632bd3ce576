"""Matches as rows: their columns, ids, and the limit per day."""
