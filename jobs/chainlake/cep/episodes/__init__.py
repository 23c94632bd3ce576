"""Matches of one key that overlap, or lie close to one another, as one row (docs/semantics.md#episodes).

``merge`` puts them together, ``days`` decides when one is finished, ``sources`` and ``found`` take events at hand.
"""
