"""One gate per family of tables: what must hold of its rows before they are published."""
