"""A definition as it would be, computed on the real events in a lake beside the real one, and compared with it."""
