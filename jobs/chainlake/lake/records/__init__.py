"""What was computed from what: the ``ops`` tables, and the states of days that follow from them."""
