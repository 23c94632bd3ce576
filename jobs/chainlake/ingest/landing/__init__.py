"""Landed files: which there are, which a run takes, which days are complete."""
