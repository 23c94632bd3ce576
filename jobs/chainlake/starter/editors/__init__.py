"""What editors are told of definitions: JSON schemas of the YAML files, and a grammar of patterns."""
