"""Tells whether the mean of the nodes' vectors is inside a convex region, without every node sending its vector."""
