"""DAG ``ingest_history``: ingests any range of days in one Spark application; it is triggered manually.

Dates are half-open as everywhere in Chainlake: ``end`` is not included.
"""

# Airflow reads only files that contain the words dag and airflow.
from airflow.sdk import Param

from chainlake.airflow.dag import ranged
from chainlake.airflow.names import source_names
from chainlake.airflow.ranges import ingest_lines
from chainlake.paths import Home

_DAY = {"type": "string", "format": "date"}

ingest_history = ranged(
    "ingest_history",
    "Landed files of a range of days into events",
    {
        "source": Param(type="string", enum=source_names(Home.from_env()), description="which files"),
        "start": Param(description="first day (UTC)", **_DAY),
        "end": Param(description="day after the last", **_DAY),
    },
    ingest_lines,
)
