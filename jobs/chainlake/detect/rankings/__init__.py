"""The best matches of a lake: merged from the published matches, period by period, right after them. This room decides
which periods are made, and publishes them; ``cep/ranking`` and ``cep/matches/best`` say what is among the best.
"""
