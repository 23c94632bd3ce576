"""The monitor step: events of a source to the changes and metrics of its models."""
