"""How landed files look: their columns, times and paths. What a source means belongs in the room above."""
