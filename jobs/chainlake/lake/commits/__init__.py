"""Changes of tables: differences, commits, publishing, and the change feed that they leave."""
