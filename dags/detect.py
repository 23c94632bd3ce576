"""DAGs ``detect_<source>``: run a source's patterns on the events of a day, one Spark application per bundle."""

# Airflow reads only files that contain the words dag and airflow.
from chainlake.airflow.dag import gated
from chainlake.airflow.names import source_names
from chainlake.paths import Home

for _source in source_names(Home.from_env()):
    globals()[f"detect_{_source}"] = gated("detect", _source, f"Patterns on the events of {_source}", max_active_runs=4)
