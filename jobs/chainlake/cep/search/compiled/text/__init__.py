"""Conditions as source text of a kernel, and what writing it asks about the events."""
