"""Conditions as source text of a kernel, and what is asked of the events while it is written."""
