"""How the work of a run is divided: where the events are, and which task searches what."""
