"""When a model counts as changed: local tests, the exact detector, the periodic baseline, thresholds."""
