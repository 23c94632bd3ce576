"""Everything that is wrong or doubtful in a pattern file, found without events."""
