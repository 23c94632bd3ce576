"""Neighbours (``SEQ STRICT``): matches whose events follow one another in the stream, found by place, not by time."""
