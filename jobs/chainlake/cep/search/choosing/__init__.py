"""Chooses the order and the backend of a branch's search, and which events can be skipped."""
