"""Where files are stored: a folder on this machine or an object store, chosen once by the form of a path."""
