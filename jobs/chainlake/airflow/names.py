"""Which DAGs there are, judged only by names in ``dags/config``, which is cheap: the scheduler asks at every parse."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import date

from chainlake.definitions.files import WORD, named_source, read_definition
from chainlake.errors import DefinitionError
from chainlake.paths import Home

# A single line is read, even from a file that is wrong elsewhere: the step will say what is wrong with it.
_START_LINE = re.compile(r"^start:\s*['\"]?(\d{4}-\d\d-\d\d)", re.MULTILINE)
# Clauses of a pattern's query for each of which there is a table.
_CLAUSES = {"episodes": re.compile(r"\bEPISODES\b", re.I), "ranked": re.compile(r"\bRANK\s+BY\b", re.I)}
_FRONT_MATTER = re.compile(r"\A(?:\s*#.*\n)*---\s*\n.*?^---\s*$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"#.*")
_DESCRIPTION_LINE = re.compile(r"^description:[ \t]*(\S.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Defined:
    """What the first lines of a pattern or a model say about it.

    Args:
        name: name of the definition.
        source: name of its source; None if it does not say.
        start: first day of a model; None for a pattern.
        description: its description; empty if it has none.
        schemas: those in which a table has its name.
    """

    name: str
    source: str | None
    start: date | None
    description: str
    schemas: tuple[str, ...]


def source_names(home: Home) -> list[str]:
    """Names of the sources: the files of ``sources/``, except those with names that no DAG can have."""
    return sorted(file.stem for file in (home.config / "sources").glob("*.yaml") if WORD.match(file.stem))


def defined(home: Home, step: str) -> list[Defined]:
    """The definitions that ``detect`` (patterns) or ``monitor`` (models) computes, by name, including broken ones."""
    folder, ending = {"detect": ("patterns", "sase"), "monitor": ("models", "yaml")}[step]
    found = []
    for file in sorted((home.config / folder).glob(f"*.{ending}")):
        try:
            text = read_definition(file)
        except DefinitionError:
            # The file has no readable text; the DAG file for broken definitions reports what is wrong with it.
            continue
        described = _DESCRIPTION_LINE.search(text)
        description = described.group(1).strip().strip("'\"") if described else ""
        start = _day(_START_LINE.search(text))
        schemas = _schemas(text) if step == "detect" else ("models",)
        found.append(Defined(file.stem, named_source(text), start, description, schemas))
    return found


def _schemas(pattern: str) -> tuple[str, ...]:
    query = _COMMENT.sub("", _FRONT_MATTER.sub("", pattern))
    return ("matches", *(schema for schema, clause in _CLAUSES.items() if clause.search(query)))


def of_source(home: Home, step: str, source: str) -> list[Defined]:
    """The definitions of ``step`` that name ``source``."""
    return [one for one in defined(home, step) if one.source == source]


def _day(found: re.Match[str] | None) -> date | None:
    try:
        return date.fromisoformat(found.group(1)) if found else None
    except ValueError:
        return None


def monitored_sources(home: Home) -> list[str]:
    """Names of the sources that have at least one model in ``models/``."""
    named = {model.source for model in defined(home, "monitor")}
    return [name for name in source_names(home) if name in named]


def first_start(home: Home, source: str) -> date | None:
    """The earliest start of the models of ``source``; None if none of them has one."""
    return min((model.start for model in of_source(home, "monitor", source) if model.start is not None), default=None)


#: The task that waits for the events of a day.
GATE = "gate"

#: DAGs that are triggered manually.
ON_DEMAND = ("backfill_history", "ingest_history", "restate_stale")

#: The DAG that compacts and cleans the tables.
MAINTENANCE = "maintain_tables"
#: When it runs, as cron has it (UTC), and the same in words for its page.
MAINTENANCE_CRON, MAINTENANCE_TIMES = "30 4 * * *", "Once a day at 04:30 UTC"


def dag_ids(home: Home) -> list[str]:
    """Ids of all DAGs."""
    return [*daily_dag_ids(home), *ON_DEMAND, MAINTENANCE]


def daily_dag_ids(home: Home) -> list[str]:
    """Ids of the DAGs that have one run per day."""
    names = source_names(home)
    return [
        *(f"ingest_{name}" for name in names),
        *(f"detect_{name}" for name in names),
        *(f"monitor_{name}" for name in monitored_sources(home)),
    ]


#: A DAG file without a DAG, whose import fails if definitions are broken; all other DAGs run.
BROKEN_DEFINITIONS = "broken_definitions"

#: The pool of the tasks that start Spark; its slots limit how many of them run at a time.
SPARK_POOL = os.environ.get("CHAINLAKE_POOL") or "spark"
