"""Turns pattern text into a checked normal form: tokens, syntax tree, names and types, layout. No events."""
