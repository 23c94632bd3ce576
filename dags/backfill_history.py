"""DAG ``backfill_history``: long stretches of history, one Spark application per chunk of days; run it by hand.

Dates are half-open as everywhere in Chainlake: ``end`` is not included.
"""

# Airflow reads only files in which it sees the words dag and airflow.
from airflow.sdk import Param

from chainlake.airflow.dag import ranged
from chainlake.airflow.ranges import backfill_lines

_DAY = {"type": "string", "format": "date"}
_NAMES = {"type": "array", "items": {"type": "string"}}

backfill_history = ranged(
    "backfill_history",
    "Days that are missing, stale or failed, in chunks of many days",
    {
        "start": Param(description="first day (UTC)", **_DAY),
        "end": Param(description="day after the last", **_DAY),
        "patterns": Param([], description="names; with no models either, everything", **_NAMES),
        "models": Param([], description="names; with no patterns either, everything", **_NAMES),
        "chunk": Param(30, type="integer", minimum=1, description="days of one Spark application"),
        "only_stale": Param(False, type="boolean", description="leave out days that were never computed"),
    },
    backfill_lines,
)
