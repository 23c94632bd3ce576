"""The report: static pages of a lake that need no server and no Internet, made after each publish and by
``chainlake report``.

Whatever turns rows of the lake into pages belongs here: what is read for them (``reading``, ``reasons``), what they
show (``overview``, ``patterns``, ``matches``, ``models``), charts as Vega-Lite specifications (``drawing``), the frame
of a page (``page``), and which pages are made when (``make``, ``kept``). ``assets/`` has the files that pages load.
What rows mean, and whether a day is done, is decided elsewhere; nothing here writes to the lake.
"""
