"""What was computed from what: the ``ops`` tables, and the states of days that follow from them.

* ``ops``: reads, writes and merges the logs of ``ops``
* ``runs``: ``ops.runs``: the phases of a step
* ``event_days``: ``ops.event_days``: which days of events can be computed from, and what a day waits for
* ``intervals``: ``ops.intervals`` as columns: what was published from what
* ``staleness``: the state of every day of a definition, the reason, and which states have to be computed
* ``chain``: the same for days that continue from the day before, from digests alone
* ``chained``: such a chain as ``ops`` records it, and why one of its days waits
* ``late_files``: which landed files made a day stale
* ``lost``: days whose table is gone
* ``suspects``: tables that someone else has written to
* ``recorded``: days of definitions whose file is gone
* ``defined``: (a room) what is known about a definition
"""
