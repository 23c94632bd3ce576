"""Delta tables as they lie: made, opened, read, written as files."""
