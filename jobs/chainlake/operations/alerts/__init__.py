"""Matches that were published or withdrawn, told to webhooks at least once, from the change feed of their table."""
