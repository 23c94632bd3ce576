"""Work on files, for which no lake is needed."""
