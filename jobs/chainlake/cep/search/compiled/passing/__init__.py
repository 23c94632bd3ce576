"""Candidates that cannot pass a comparison with any event in reach are left out before the search.

* ``comparisons``: which comparisons of single events the conditions of a plan state and imply
* ``choice``: which of them pay, from a few candidates
* ``leave_out``: the candidates that are left, with what is read of them
* ``sweep``: the passes over the events, as machine code
* ``counted``: what a search counts of the candidates that were left out
"""
