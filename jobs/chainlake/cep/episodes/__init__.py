"""Matches of one key that overlap, or lie close to one another, as one row (docs/semantics.md#episodes)."""
