"""The detect step: events of a source to its match tables."""
