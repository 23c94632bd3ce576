"""Compiles a pattern's checked text, part by part: names, tail, functions, episodes, ranking."""
