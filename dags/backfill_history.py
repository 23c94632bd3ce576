"""DAG ``backfill_history``: computes long history, one Spark application per chunk of days; it is triggered manually.

Dates are half-open as everywhere in Chainlake: ``end`` is not included.
"""

# Airflow reads only files that contain the words dag and airflow.
from airflow.sdk import Param

from chainlake.airflow.dag import ranged
from chainlake.airflow.names import defined
from chainlake.airflow.ranges import backfill_lines
from chainlake.operations.backfills.applications import CHUNK
from chainlake.paths import Home

# Airflow's form marks every field that may not be null as required.
_DAY = {"type": "string", "format": "date"}
_HOME = Home.from_env()


def _names(step: str, without: str) -> Param:
    """A parameter for names of definitions: any names, with the existing ones to pick from."""
    choices = [one.name for one in defined(_HOME, step)]
    description = f"which ones; with no {without} either, everything"
    return Param([], type=["array", "null"], items={"type": "string"}, examples=choices, description=description)


backfill_history = ranged(
    "backfill_history",
    "Days that are missing, stale or failed, in chunks of many days",
    {
        "start": Param(description="first day (UTC)", **_DAY),
        "end": Param(description="day after the last", **_DAY),
        "patterns": _names("detect", "models"),
        "models": _names("monitor", "patterns"),
        "chunk": Param(CHUNK, type=["integer", "null"], minimum=1, description="days of one Spark application"),
        "only_stale": Param(False, type=["boolean", "null"], description="leave out days that were never computed"),
    },
    backfill_lines,
)
