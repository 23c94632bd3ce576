"""Finds everything that is wrong or doubtful in a pattern file, without events.

* ``report``: goes through a file and gathers errors and warnings
* ``warnings``: the warnings of a pattern that compiles: one function for each kind, all called by ``warnings_of``
* ``findings``: the texts of the warnings
* ``observed``: keys and types that no event of the lake has had
* ``calls``: functions that would be called too often
* ``ranking``: values that a ranking compares
* ``set_aside``: lets lint continue after an error, without the condition that has it
"""
