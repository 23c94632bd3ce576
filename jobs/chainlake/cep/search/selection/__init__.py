"""Which matches are published, and which events they use up (docs/semantics.md#selection)."""
