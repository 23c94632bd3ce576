"""The command line: the entry point, and what several verbs share. The verbs themselves are in ``verbs``."""
