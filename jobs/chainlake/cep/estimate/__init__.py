"""What an order costs before it runs: rates of names, selectivities of conditions, expected evaluations."""
