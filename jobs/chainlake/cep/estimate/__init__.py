"""What an order costs before it runs: rates of names, selectivities of conditions, expected evaluations.

* ``cost``: expected evaluations of an order, with the calls of functions of pairs
* ``selectivity``: the share of pairs that pass a condition, measured on events
* ``rates``: events per name, from the counts that ingest made
"""
