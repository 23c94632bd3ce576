"""A model day by day: its rows, the state between days, and sweeps over thresholds.

* ``definitions``: the kinds of models: what reads each, where its rows go
* ``runs``: what runs a group of each kind
* ``daily``: a UTC day of a linear model: its rows, its state, its remarks
* ``threshold_daily``: the same for a threshold monitor
* ``replay``: several days of a group, one after the other, for the library and for the step
* ``traces``: a model round by round, for pictures and sweeps
* ``tuning``: what other values of eps, W and phi would have found
* ``trials``: the same for settings of the other kinds of models
* ``knobs``: which settings of them can be tried, and by which figures they are judged
"""
