"""The daily steps, and the audit of their tables."""
