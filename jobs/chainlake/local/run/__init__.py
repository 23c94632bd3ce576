"""The programs behind ``make run`` and ``make airflow``.

* ``demo``: ``make run`` from beginning to end
* ``chain``: takes the shipped days through the DAGs
* ``driving``: the same for an Airflow that may already be running
* ``shipped``: which days are shipped, and which files land for each
* ``progress``: the lines that are shown while it works
* ``first``: the first matches, as soon as there are some
* ``summary``: the summary at the end: its tables, places and times
* ``serve``: ``make airflow``
* ``elsewhere``: ``make docker-run``
"""
