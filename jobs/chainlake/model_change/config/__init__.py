"""Model files as checked values.

* ``model``: reads the file of a linear model: its keys and their defaults
* ``threshold``: the same for ``kind: threshold``; the other kinds have their own rooms
* ``series``: the keys that all kinds share
* ``nodes``: ``nodes`` and ``groups``
* ``features``: ``response``, ``features`` and their transforms, and their values in every round
* ``expressions``: ``where`` and ``expression``: text of the pattern language about one event
* ``aggregates``: the values of the key ``aggregate``
* ``reading``: typed look-ups: a number from 0 on, a duration, a day
* ``errors``: what can be wrong in the file
"""
