"""The patterns and models of an installation, read from its configuration folder."""
