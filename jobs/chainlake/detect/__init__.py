"""The detect step: events of a source to its match tables.

* ``step``: one run: plan, compute, publish, episodes, rankings
* ``plan``: which days of which patterns have to be computed
* ``work``: what a run shares, and its results
* ``prepared``: the order of each pattern, and what each task does
* ``order``: chooses the orders, from counts, a sample and stated rates, and records them in ``ops.plans``
* ``division``: (a room) divides time and keys among tasks
* ``run``: counts, searches, stages, audits, publishes
* ``stage``: what a task does
* ``answers``: pairs that several tasks need, each evaluated by one of them
* ``feed``: the events that a task reads
* ``matcher``: finds the matches of one pattern in them
* ``chained``: (a room) patterns that use events up
* ``derived``: what episodes and rankings have in common
* ``episodes``: (a room) their rows, day by day
* ``rankings``: (a room) their rows, period by period
"""
