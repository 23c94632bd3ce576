"""Merges matches of one key that overlap or lie close to one another into one row (docs/semantics.md#episodes).

* ``merge``: merges spans of matches
* ``days``: when an episode is finished, and which day owns it
* ``sources``: spans from matches: of a search, or of a table
* ``found``: the episodes of a search in memory (``cl.episodes``)
"""
