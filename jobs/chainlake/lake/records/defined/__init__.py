"""What the records know about definitions: their tables and versions, and the days that they should have."""
