"""Turns text into abstract syntax: a recursive-descent parser whose errors say where and what to do next."""
