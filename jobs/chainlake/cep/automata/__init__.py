"""The chain, tree and eager automata over events in order: what a search costs event by event (docs/automata.md)."""
