"""Events from files on the command line, without a source definition."""
