"""Work on many days: computing them, computing them again, ending a definition."""
