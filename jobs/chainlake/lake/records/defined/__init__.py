"""What the records know of definitions: their tables and versions, and the days that they should have."""
