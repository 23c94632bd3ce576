"""DAG ``restate_stale``: computes every stale or failed day again, however old; it is triggered manually.

The daily DAGs look back a week; ``chainlake status --state stale`` lists stale days of any age.
"""

# Airflow reads only files that contain the words dag and airflow.
from airflow.sdk import Param

from chainlake.airflow.dag import ranged
from chainlake.airflow.names import source_names
from chainlake.airflow.ranges import restate_lines
from chainlake.operations.backfills.applications import CHUNK
from chainlake.paths import Home

# Airflow's form marks every field that may not be null as required.
restate_stale = ranged(
    "restate_stale",
    "Stale and failed days of all ages",
    {
        "sources": Param(
            [],
            type=["array", "null"],
            items={"type": "string"},
            examples=source_names(Home.from_env()),
            description="which ones; none: all",
        ),
        "chunk": Param(CHUNK, type=["integer", "null"], minimum=1, description="days of one Spark application"),
    },
    restate_lines,
)
