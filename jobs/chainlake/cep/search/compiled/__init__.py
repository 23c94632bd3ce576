"""The compiled backend: machine code generated from the typed plan, for the same matches and the same counts.

* ``text``: values and clauses as code, and the arrays and numbers that a kernel reads (``slots``)
* ``passing``: candidates that cannot pass are left out before the search
* ``lists``: which candidates a kernel looks at, by time and by value, as tables made before the search
* ``generate``, ``sets``: the loops of a plan
* ``best``: selects the wanted matches of each last event
* ``bounded``: drops partial matches whose best completion is below the thresholds
* ``output``: where a kernel writes matches
* ``machine``: compiles source to machine code, kept on disk
* ``run``: one branch, from candidates to batches of matches

Which backend a branch runs on, and why, is in ``search/choosing``.
"""
