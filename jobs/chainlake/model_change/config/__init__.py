"""Model files as checked values."""
