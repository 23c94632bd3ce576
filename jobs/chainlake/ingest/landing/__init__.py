"""Landed files: which there are, which a run takes, which days are complete.

* ``walk``: which files are in a landing folder, without opening any
* ``discovery``: their content: checksums, path fields, which are too young, which need not be read again
* ``container``: opens them: plain, gzip, zip
* ``plan``: which of them a run takes, and which are read again
* ``effective``: a file whose rows count
* ``outcomes``: what became of each file, and how a step reports it
* ``first``: what has landed for a source before its first ingest
* ``waiting_log``: files that are left for a later run
* ``expected``: the files that ``expect`` names for a day
* ``completeness``: which days are open, complete or provisional
* ``edits``: what an edit of a source's file does to its tables
* ``lost``: what a run does if tables are gone
"""
