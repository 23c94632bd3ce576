"""The best matches of a lake: merged from the published matches, period by period, right after these.

Here is which periods are made, and publishing; what is among the best is in ``cep/ranking`` and ``cep/matches/best``.
"""
