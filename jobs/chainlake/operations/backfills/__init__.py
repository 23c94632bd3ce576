"""Long ranges of days: plans of what to compute, as values, and the Spark applications that do it."""
