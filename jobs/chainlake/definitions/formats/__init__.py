"""How landed files look: their columns, times and paths. What a source means belongs in the room above.

* ``format``: reads the entries of ``formats``: their keys and their defaults
* ``kinds``: the kinds of files
* ``mappings``: ``map``, ``unpivot``, ``sentinels``; the words of a boolean, and how a number is written
* ``time_formats``: which formats of times can be read
* ``path_groups``: the fields of ``path``
* ``globs``: ``glob`` and ``expect``; the names of unfinished files, which are ignored
* ``errors``: what can be wrong with an entry
"""
