"""DAGs ``monitor_<source>``: run a source's models day by day, for the sources that a model names."""

# Airflow reads only files that contain the words dag and airflow.
from chainlake.airflow.dag import gated
from chainlake.airflow.names import monitored_sources
from chainlake.paths import Home

for _source in monitored_sources(Home.from_env()):
    globals()[f"monitor_{_source}"] = gated("monitor", _source, f"Models on the events of {_source}", max_active_runs=1)
