"""Is the mean of the nodes' vectors still inside a convex region, without every node sending its vector."""
