"""SQL over the published tables without a JVM.

* ``query``: a connection with all tables and views
* ``scan``: a Delta table as something that DuckDB can select from
* ``matches``: views of match tables such as ``…_flat``, and which events their rows bind and use up
* ``origin``: the views ``…_origin``: which definition, engine and run a row's day came from
* ``ranked``: ``ranked.<pattern>_matches``, ranked rows with their bound events
* ``zones``: ``models.zones``
* ``safe``: what ``--safe`` refuses
* ``duck``: DuckDB within a step
* ``errors``: why a statement has no result
"""
