"""Landed files: what there is, what a run takes, which days are complete."""
