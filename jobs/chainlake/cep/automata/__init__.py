"""The chain, tree and eager automata, run event by event, which show what a search costs (docs/automata.md)."""
