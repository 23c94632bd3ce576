"""Raw rows to events: identity, duplicates, conflicts, corrections, and their writing."""
