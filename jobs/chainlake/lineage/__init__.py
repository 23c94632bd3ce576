"""What a run read and wrote, told to a lineage server: events of OpenLineage made from ``ops.runs`` and the tables.

Nothing here is imported unless a transport of OpenLineage is set up; the engine and the tables know nothing of it.
"""
