"""Alerts: what was published or withdrawn is sent to webhooks at least once, from the change feed of its table."""
