"""Where files lie: a folder of this machine or an object store, chosen once by the form of a path, and read alike."""
