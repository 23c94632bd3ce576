"""Checks of the machine: each says in one sentence what is missing and what to do. Standard library only."""
