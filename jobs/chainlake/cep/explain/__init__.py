"""Explains what a pattern means and where a search loses candidates.

* ``report``: what ``chainlake explain`` prints, and its Mermaid picture; the costs of ``--simulate``
* ``parts``: its sentences on bounds, neighbours, sets, rankings and calls
* ``near_misses``: where candidates are lost
* ``nearness``: how near the best of them were
* ``failing``: which conditions fail for events that were expected to match
* ``described``: near misses in lines of text
"""
