"""All Delta code: session, tables, locks, differences, publishing, operations logs, staleness."""
