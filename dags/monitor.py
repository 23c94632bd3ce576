"""DAGs ``monitor_<source>``: the models of a source, day by day, for the sources that a model names."""

# Airflow reads only files in which it sees the words dag and airflow.
from jobs.airflow_run.dag import gated
from jobs.airflow_run.names import monitored_sources
from jobs.paths import Home

for _source in monitored_sources(Home.from_env()):
    globals()[f"monitor_{_source}"] = gated("monitor", _source, f"Models on the events of {_source}", max_active_runs=1)
