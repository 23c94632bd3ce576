"""Many days: what is computed, computed again, or ended."""
