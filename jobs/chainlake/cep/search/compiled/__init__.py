"""The compiled backend: machine code generated from the typed plan, for the same matches and the same counts.

* ``slots``: the arrays and numbers that a kernel reads, each under a number; nothing else reaches the code
* ``expressions``: values and clauses as code
* ``scopes``, ``merge``: where the events of a name lie, as tables made before the search
* ``generate``, ``listed``, ``sets``: the loops of a plan
* ``best``: which of the matches of one last event are wanted
* ``skip``, ``stretches``: which steps search by value or list what they find, and values sorted in stretches
* ``machine``: source to machine code, kept on disk
* ``run``: one branch, from candidates to batches of matches
* ``choose``: which backend a branch runs on, and why
"""
