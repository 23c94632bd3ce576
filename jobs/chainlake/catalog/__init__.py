"""The patterns and models of an installation, read from its configuration folder.

* ``installed``: everything that an installation defines
* ``patterns``: patterns, compiled against their sources; which version of a match table is current
* ``episodes``: the tables and days of their episodes
* ``rankings``: the tables and days of their rankings
* ``derived``: what episodes and rankings have in common
* ``models``: models, checked against their sources
* ``model_lint``: what is wrong or doubtful in a model's file
* ``functions``: the code of declared functions
* ``observed``: the keys and types that events have had
* ``tables``: the tables that all of them publish to
* ``errors``: faults of a definition that can be found only in an installation
"""
