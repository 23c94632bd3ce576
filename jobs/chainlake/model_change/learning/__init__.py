"""Learners that share what they learn: when their models must be synchronised.

* ``config``: reads a file of ``kind: shared_learning``: its keys and their defaults
* ``learners``: the losses, a step of a learner, and when learners are synchronised
* ``days``: a UTC day of a group: its rows, and the state at its end
* ``errors``: what can be wrong in the file
"""
