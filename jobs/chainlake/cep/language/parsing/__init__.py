"""Tokens to abstract syntax: a recursive-descent parser with errors that say where and what to do next."""
