"""A model day by day: rows, state between days, sweeps over thresholds."""
