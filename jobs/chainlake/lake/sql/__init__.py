"""SQL over the published tables without a JVM.

* ``query``: a connection with all tables and views
* ``scan``: a Delta table as something that DuckDB can select from
* ``matches``: views of match tables, and which events their rows bind and use up
* ``flat``: the view ``…_flat``, in the SQL of several engines
* ``elsewhere``: statements that make the tables known to Spark and Trino
* ``origin``: the views ``…_origin``: which definition, engine and run a row's day came from
* ``ranked``: ``ranked.<pattern>_matches``, ranked rows with their bound events
* ``zones``: ``models.zones``
* ``safe``: what ``--safe`` refuses
* ``duck``: DuckDB within a step
* ``errors``: why a statement has no result
"""
