"""DAG ``maintain_tables``: compacts, cleans and checks all tables."""

# Airflow reads only files that contain the words dag and airflow.
from chainlake.airflow.dag import maintenance
from chainlake.airflow.names import MAINTENANCE

maintain_tables = maintenance(MAINTENANCE, "Merge small files, remove what is past its retention, check every table")
