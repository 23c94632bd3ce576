"""What Airflow's page says about a DAG: what it does, for which definitions, the names of runs, where the rows are.

It is made from the files' first lines when DAGs are parsed, so it costs next to nothing.
"""

from __future__ import annotations

import re

from chainlake.airflow.names import MAINTENANCE_TIMES, Defined
from chainlake.definitions.files import WORD
from chainlake.terminal import one_line

#: Characters that have a meaning in Markdown or HTML.
_SIGNS = re.compile(r"[&<>|\\`*_~\[\]!]")

_RUNS = (
    "**Runs** of the schedule are named after the UTC day that they compute, `scheduled__2025-10-01`; "
    "Airflow names the runs of a backfill after the end of that day, `backfill__2025-10-02T00:00:00+00:00`. "
    "*Trigger* computes the UTC day of the *Logical Date* in its form, which must be over. To compute many days, use "
    "`ingest_history` and `backfill_history`, or *Backfill* in the form, which includes its last day. "
    "Running a day again publishes the same rows. "
    "A new DAG is paused: the switch beside its name starts its schedule, and all runs wait until then."
)
_BY_HAND = "**By hand**: *Trigger* asks for what is needed. The DAG has no schedule, and a new one is not paused."


def ingest_page(source: str) -> str:
    """The text for a DAG that ingests a source."""
    return _page(
        f"Reads the landed files of a day of `{source}` and turns them into events. Rows that cannot be read are in "
        f"`quarantine.{source}`, with the reason, the file and the line.",
        _RUNS,
        f"**Tables**: `events.{source}`, `raw.{source}`, `quarantine.{source}`.",
        f"**A range of days**: the DAG `ingest_history`, or `chainlake ingest {source} FROM TO`.",
    )


def gated_page(step: str, source: str, defined: list[Defined]) -> str:
    """The text for a DAG that waits for events and computes from them."""
    what = {"detect": "patterns", "monitor": "models"}[step]
    schemas = dict.fromkeys(("matches", *(schema for one in defined for schema in one.schemas)))
    tables = {
        "detect": ", ".join(f"`{schema}.NAME`" for schema in schemas),
        "monitor": "`models.metrics`, and one for each kind of model, such as `models.changes`",
    }[step]
    rows = [f"| {_name(one.name)} | {_cell(one.description)} |" for one in defined]
    return _page(
        f"Waits until the events of a day of `{source}` are complete, runs its {what} on them, checks the rows with "
        "the quality suites and publishes the differences.",
        _RUNS,
        f"**Tables**: {tables}; `…_origin` has the file and the line of every event.",
        "\n".join([f"| {what} | what they describe |", "|---|---|", *rows]),
        "**Older days**: the DAGs `backfill_history` and `restate_stale`. "
        "**The state of every day**: `chainlake status`.",
    )


def by_hand_page(what: str) -> str:
    """The text for a DAG that is triggered manually."""
    return _page(f"{what}.", _BY_HAND)


def maintenance_page(what: str) -> str:
    """The text for the DAG that maintains the tables."""
    runs = f"{MAINTENANCE_TIMES}, or by hand; runs are named after the moment at which they start."
    return _page(f"{what}.", f"**Runs**: {runs} A new DAG is not paused.")


def _page(*parts: str) -> str:
    return "\n\n".join(parts)


def _name(text: str) -> str:
    """The name of a definition, escaped if necessary, since a file can have any name."""
    return f"`{text}`" if WORD.match(text) else _cell(text)


def _cell(text: str) -> str:
    """Text for a table cell, shown as it is: no character ends the cell, loads an image or makes a link."""
    return _SIGNS.sub(lambda found: f"&#{ord(found[0])};", one_line(text))
