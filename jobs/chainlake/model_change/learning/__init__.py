"""Learners that share what they learn: when their models have to be brought together."""
