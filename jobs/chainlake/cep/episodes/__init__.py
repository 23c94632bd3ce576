"""Merges matches of one key that overlap or lie close to one another into one row (docs/semantics.md#episodes).

``merge`` merges stretches, ``days`` decides when an episode is finished, ``sources`` makes stretches of matches, and
``found`` gives the episodes of a search.
"""
