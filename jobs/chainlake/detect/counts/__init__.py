"""Where the events of a pattern lie, by name, time and key: what work is divided by."""
