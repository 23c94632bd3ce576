"""Sends what a run read and wrote to a lineage server, as OpenLineage events made from ``ops.runs`` and the tables.

Nothing here is imported unless a transport of OpenLineage is configured; the engine and the tables do not depend on it.
"""
