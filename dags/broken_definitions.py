"""No DAG: shows broken definitions at the top of Airflow's page, among the files that it cannot import."""

# Airflow reads only files that contain the words dag and airflow.
from chainlake.airflow.broken import check_definitions
from chainlake.paths import Home

check_definitions(Home.from_env())
