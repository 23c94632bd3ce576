"""Upkeep of tables: compacting, removing old versions after their retention (``maintain``), comparing, checking.

* ``maintain``: merges small files and removes what is past its retention; the limits are defined there
* ``check_table``: whether the files of a table are what its log says
* ``check_published``: whether results tables hold what was recorded as published
* ``check_ops``: whether the logs of ``ops`` are complete
* ``contents``: reads every row of a table for ``chainlake check``
* ``recorded``: what each results table should hold
* ``findings``: what a check finds, and what fixes it
* ``damage``: the error for a damaged table, and its remedy
* ``set_aside``: moves damaged files out of their table
* ``ops_rebuild``: makes a log of ``ops`` again from its data files
* ``same``: whether two lakes hold the same tables
"""
