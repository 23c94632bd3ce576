"""Functions that are called with many pairs at a time, each pair once, after all cheaper conditions."""
