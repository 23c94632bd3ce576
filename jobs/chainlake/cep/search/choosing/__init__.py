"""In which order and on what a branch is searched, and which events need not be looked at."""
