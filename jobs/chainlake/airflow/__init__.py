"""What DAG files import: DAGs, their tasks and names. It is light enough for every parse; no Spark, no Delta.

* ``dag``: builds the DAGs: schedules, retries, time limits, pools
* ``names``: which DAGs there are, from the first lines of definitions; when maintenance runs
* ``page``: the text of each DAG's page (*Dag Docs*)
* ``tasks``: what tasks do: the day of a run, the wait for its events, the step
* ``ranges``: the tasks of DAGs that are triggered manually
* ``failures``: reports a task that has failed for good to a webhook
* ``plugin``: the timetable: when a day's run starts, the day of a manual run, and the names of runs
* ``releases``: what Airflow's releases have in different places
* ``broken``: broken definitions, shown as a broken DAG file
"""
