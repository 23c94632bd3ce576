"""Bounded search for the best matches, which does not build what cannot be among them (docs/semantics.md#ranking).

* ``strategy``: which ways of finding the best matches a pattern allows, and why not the others
* ``score``: the largest score that a partial match can still reach, for any back end
* ``arrays``, ``extremes``: the same on columns
* ``lists``: in which lists a partial match can still be
* ``thresholds``: the score that a match must now reach in each list
* ``cut``: partial matches that are left out, on NumPy; ``search/compiled/bounded.py`` does it in machine code
"""
