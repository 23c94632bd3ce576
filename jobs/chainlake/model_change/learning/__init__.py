"""Learners that share what they learn: when their models must be brought together."""
