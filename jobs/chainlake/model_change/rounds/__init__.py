"""Events to rounds: one row per key and round, carried values, who takes part."""
