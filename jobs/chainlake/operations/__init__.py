"""Work on a whole lake: computing long ranges of days, repair, retirement, maintenance.

* ``status``: ``chainlake status``: the state of all days, and notes about files and definitions
* ``check``: ``chainlake check``
* ``repair``: ``chainlake check --repair``: marks what has to be computed again
* ``maintain``: ``chainlake maintain``: all tables, one after the other
* ``sweep``: removes other things after a time: logs, caches, temporary files
* ``retire``: ``chainlake retire``
* ``backfills``: (a room) many days: plans, and the applications that compute them
* ``shadow``: (a room) an edited definition tried beside the lake
* ``alerts``: (a room) matches and changes sent to webhooks
* ``lake``: ``chainlake.Lake``
* ``open_episodes``: the views ``episodes.<pattern>_open``
* ``ranked_scopes``: the views ``ranked.<pattern>_scopes``
* ``searched``: how the best matches were last searched for, as ``explain`` prints it
* ``exercise``: a small day, run to see which classes Spark loads
"""
