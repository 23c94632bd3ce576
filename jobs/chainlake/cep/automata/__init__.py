"""The chain and eager automata over events in order: what a search costs event by event, and its pictures."""
