"""The monitor step: from a source's events to the changes and metrics of its models."""
