"""The gate of match tables, and the measures of matches that it tests.

* ``gate``: the suite of a pattern, and what it finds in three rows per day
* ``measures``: what is measured in a match: its span, its order, its bound events
* ``rules``: what is known about the pattern
* ``files``: reads the matches; measures that depend on other rows or on the events
"""
