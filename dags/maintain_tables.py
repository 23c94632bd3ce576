"""DAG ``maintain_tables``: compaction, clean-up and a check of all tables, once a day."""

# Airflow reads only files in which it sees the words dag and airflow.
from chainlake.airflow.dag import maintenance
from chainlake.airflow.names import MAINTENANCE

maintain_tables = maintenance(MAINTENANCE, "Merge small files, remove what its retention has passed, check every table")
