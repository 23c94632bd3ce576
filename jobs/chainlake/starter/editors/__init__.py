"""What editors need to know about definitions: JSON schemas of the YAML files, and a grammar of patterns."""
