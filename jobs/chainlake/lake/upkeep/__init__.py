"""Upkeep of tables: compacting, removing old versions after their retention (``maintain``), comparing, checking."""
