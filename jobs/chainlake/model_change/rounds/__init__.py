"""From events to rounds: one row per key and round, carried values, and which nodes take part."""
