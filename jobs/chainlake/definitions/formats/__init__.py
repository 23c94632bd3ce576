"""How landed files look: their columns, times and paths. What a source means is above."""
