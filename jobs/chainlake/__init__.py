"""Chainlake: event-pattern and model-change detection on Delta tables."""
