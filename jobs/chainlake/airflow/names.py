"""Which DAGs there are, from the names in ``dags/config`` alone: read by the scheduler at every parse, so cheaply."""

from __future__ import annotations

import os
import re
from datetime import date

from chainlake.definitions.files import WORD, named_source, read_definition
from chainlake.errors import DefinitionError
from chainlake.paths import Home

# One line is enough here and survives a file that is wrong elsewhere: the step says what is wrong with it.
_START_LINE = re.compile(r"^start:\s*['\"]?(\d{4}-\d\d-\d\d)", re.MULTILINE)


def source_names(home: Home) -> list[str]:
    """Names of the sources: the files of ``sources/``, but for those whose names no DAG can have."""
    return sorted(file.stem for file in (home.config / "sources").glob("*.yaml") if WORD.match(file.stem))


def _models(home: Home) -> list[tuple[str | None, date | None]]:
    """Source and start of every model file, None where the file does not say."""
    found = []
    for file in sorted((home.config / "models").glob("*.yaml")):
        try:
            text = read_definition(file)
        except DefinitionError:
            # No text says what it is about; status and the steps say what is wrong with the file.
            continue
        found.append((named_source(text), _day(_START_LINE.search(text))))
    return found


def _day(found: re.Match[str] | None) -> date | None:
    try:
        return date.fromisoformat(found.group(1)) if found else None
    except ValueError:
        return None


def monitored_sources(home: Home) -> list[str]:
    """Names of the sources that at least one model of ``models/`` is about."""
    named = {source for source, _ in _models(home)}
    return [name for name in source_names(home) if name in named]


def first_start(home: Home, source: str) -> date | None:
    """The earliest start of the models of ``source``; None if none of them says."""
    return min((start for name, start in _models(home) if name == source and start is not None), default=None)


#: DAGs that are run by hand.
ON_DEMAND = ("backfill_history", "restate_stale")

#: The DAG that compacts and cleans the tables.
MAINTENANCE = "maintain_tables"


def dag_ids(home: Home) -> list[str]:
    """Ids of all DAGs."""
    return [*daily_dag_ids(home), *ON_DEMAND, MAINTENANCE]


def daily_dag_ids(home: Home) -> list[str]:
    """Ids of the DAGs that have a run per day."""
    names = source_names(home)
    return [
        *(f"ingest_{name}" for name in names),
        *(f"detect_{name}" for name in names),
        *(f"monitor_{name}" for name in monitored_sources(home)),
    ]


#: The pool of the tasks that start Spark: its slots are how many of them run at a time.
SPARK_POOL = os.environ.get("CHAINLAKE_POOL") or "spark"
