"""Delta tables in their storage: made, opened, read, written as files."""
