"""Tells whether the mean of the nodes' vectors is inside a convex region, without every node sending its vector.

* ``config``: reads a file of ``kind: safe_zones``: its keys and their defaults
* ``region``: boxes, polygons and half-planes as one list of half-planes
* ``design``: zones from history: the methods, and which of them ``auto`` takes
* ``monitor``: one round after another: who reports, who is asked, when the mean is outside
* ``days``: a UTC day of a group: its rows, and the state at its end
* ``errors``: what can be wrong in the file
"""
