"""Long stretches of days: what they need, as values, and the applications that do it."""
