"""All Delta code: session, tables, locks, differences, publishing, logs of operations, staleness."""
