"""The best matches as the best paths: one pass that keeps the best beginnings (docs/semantics.md#ranking).

* ``steps``: what each event adds to a score, step by step, and when sums of doubles are exact
* ``kernel``: the pass
* ``passing``: finds the best matches of a pattern
* ``strategy_run``: chooses the strategy that finds the best matches, and begins it
"""
