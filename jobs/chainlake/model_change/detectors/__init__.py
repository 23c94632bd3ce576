"""When a model counts as changed: local tests, the exact and the periodic baseline, thresholds."""
