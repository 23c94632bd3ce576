"""All Delta code: session, tables, locks, differences, publishing, operations logs, staleness (design §4, §9)."""
