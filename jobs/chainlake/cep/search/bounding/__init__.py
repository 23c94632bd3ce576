"""Bounded search for the best matches, which does not build what cannot be among them (docs/semantics.md#ranking).

* ``strategy``: which strategies a pattern allows, and why not the others
* ``begin``: prepares the branches of a pattern for such a search
* ``score``: the largest score that a partial match can still reach, for any back end
* ``terms``: a score as a sum of terms, each of one event
* ``arrays``, ``extremes``: the same bounds, computed on columns
* ``lists``: in which lists a partial match can still be
* ``thresholds``: the score that a match currently has to reach in each list
* ``cut``: leaves out partial matches, on NumPy; ``search/compiled/bounded.py`` does it in machine code
"""
