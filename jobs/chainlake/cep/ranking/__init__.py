"""The best matches: their scores, the periods in which they compete, which are kept. Pure functions on arrays.

* ``kinds``: the words after PER and COMBINE, and all that each means
* ``rule``: a ranking as plain numbers
* ``periods``: the periods to which matches belong
* ``days``: on which UTC days they begin, and which days they reach
* ``score``: the score of a match
* ``lists``: in which lists a match competes
* ``best``: the best of a list
* ``keeper``: the same, batch by batch
* ``part``: matches that were found in parts, and the best of all of them
"""
