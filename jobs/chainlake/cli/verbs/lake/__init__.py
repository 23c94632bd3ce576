"""Verbs about what is in the lake, and whether it is as it should be."""
