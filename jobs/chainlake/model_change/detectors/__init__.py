"""When a model counts as changed: local tests, the exact detector, the periodic baseline, thresholds.

* ``constraints``: what a node tests by itself, for each value of the key ``constraint``
* ``local``: ``detector: local``: nodes test their drift, and one violation synchronises all
* ``exact``: ``detector: exact``: the first round whose exact model is more than eps away
* ``periodic``: synchronising every T rounds, with which the others are compared
* ``threshold``: ``kind: threshold``: when ``below`` and ``recovered`` are reported, and who is asked
"""
