"""A model day by day: its rows, the state between days, and sweeps over thresholds."""
