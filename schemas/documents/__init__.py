"""The tables told to people: the page of all tables, and the contract of readers."""
