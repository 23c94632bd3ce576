"""The definitions of an installation, read from its configuration folder: patterns and models."""
