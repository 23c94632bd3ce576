"""The steps of one day, and what audits their tables."""
