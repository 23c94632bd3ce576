"""How the work of a run is divided: where the events lie, and which task searches what."""
