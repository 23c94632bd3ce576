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
    "**Runs** of the schedule are named by the UTC day that they compute, `scheduled__2025-10-01`; Airflow names those "
    "of a backfill by the moment at which that day is over, `backfill__2025-10-02T00:00:00+00:00`. "
    "*Trigger* runs the UTC day of the *Logical Date* in its form, which has to be over. Many days come from "
    "`ingest_history` and `backfill_history`, or from *Backfill* in the form, whose last day is included. "
    "A day that is run again publishes the same rows. "
    "A new DAG is paused: the switch beside its name starts its schedule, and all runs wait until then."
)
_BY_HAND = "**By hand**: *Trigger* asks for what is needed. Nothing runs by itself. It is not paused when it is new."


def ingest_page(source: str) -> str:
    """The text for a DAG that ingests a source."""
    return _page(
        f"Reads the landing files of a day of `{source}` and makes events of them. What cannot be read is in "
        f"`quarantine.{source}`, with the reason, the file and the line.",
        _RUNS,
        f"**Tables**: `events.{source}`, `raw.{source}`, `quarantine.{source}`.",
        f"**A stretch of days**: the DAG `ingest_history`, or `chainlake ingest {source} FROM TO`.",
    )


def gated_page(step: str, source: str, defined: list[Defined]) -> str:
    """The text for a DAG that waits for events and computes from them."""
    what = {"detect": "patterns", "monitor": "models"}[step]
    tables = {
        "detect": "`matches.NAME`",
        "monitor": "`models.metrics`, and one for each kind of model, such as `models.changes`",
    }[step]
    rows = [f"| {_name(one.name)} | {_cell(one.description)} |" for one in defined]
    return _page(
        f"Waits until the events of a day of `{source}` are complete, runs its {what} on them, checks the rows "
        "by their suites and publishes the differences.",
        _RUNS,
        f"**Tables**: {tables}; `…_origin` has the file and the line of every event.",
        "\n".join([f"| {what} | what they tell |", "|---|---|", *rows]),
        "**Older days**: the DAGs `backfill_history` and `restate_stale`. "
        "**The state of every day**: `chainlake status`.",
    )


def by_hand_page(what: str) -> str:
    """The text for a DAG that is run by hand."""
    return _page(f"{what}.", _BY_HAND)


def maintenance_page(what: str) -> str:
    """The text for the DAG that maintains the tables."""
    runs = f"{MAINTENANCE_TIMES}, also by hand; its runs are named by the moment of their start."
    return _page(f"{what}.", f"**Runs**: {runs} It is not paused when it is new.")


def _page(*parts: str) -> str:
    return "\n\n".join(parts)


def _name(text: str) -> str:
    """The name of a definition, escaped if necessary, since a file can have any name."""
    return f"`{text}`" if WORD.match(text) else _cell(text)


def _cell(text: str) -> str:
    """Text for a table cell, shown as it is: no character ends the cell, loads an image or makes a link."""
    return _SIGNS.sub(lambda found: f"&#{ord(found[0])};", one_line(text))
