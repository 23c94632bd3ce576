"""DAG ``maintain_tables``: compaction, clean-up and a check of all tables, once a day."""

# Airflow reads only files in which it sees the words dag and airflow.
from jobs.airflow_run.dag import maintenance
from jobs.airflow_run.names import MAINTENANCE

maintain_tables = maintenance(MAINTENANCE, "Merge small files, remove what its retention has passed, check every table")
