"""The tables as documents: the page of all tables, and the data contract for readers."""
