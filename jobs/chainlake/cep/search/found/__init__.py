"""What a search found: matches as arrays of rows, each once, with their days and measures."""
