"""The gates, one per family of tables: what must be true of its rows before they are published."""
