"""Episodes of a lake: made from the published matches, day by day, right after these.

Here is which days are made, and publishing; what an episode is, and when it is finished, is in ``cep/episodes``.
"""
