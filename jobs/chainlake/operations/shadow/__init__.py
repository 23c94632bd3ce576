"""Tries an edited definition on the real events, in a lake beside the real one, and compares the results."""
