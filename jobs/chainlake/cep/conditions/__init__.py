"""Conditions over columns of candidate events, evaluated in blocks of bounded size."""
