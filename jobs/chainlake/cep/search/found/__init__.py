"""What a search found: matches as arrays of rows, with their days and measures."""
