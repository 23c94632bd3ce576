"""``chainlake status``: shows the state of every definition and day (done, missing, stale, …); without a JVM."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from chainlake.catalog.models import LoadedModel
from chainlake.cli.errors import OptionsClash
from chainlake.cli.named import name_of
from chainlake.days import Days
from chainlake.env.arrow import arrow_without_pandas
from chainlake.lake.records.staleness import STATES, Judged, State
from chainlake.lake.remembered import forgotten
from chainlake.monitoring.states import KeptStates
from chainlake.operations.status import (
    RecordedFiles,
    cut_off_attempts,
    judge_all,
    left_files,
    not_ingested,
    united,
    untaken_files,
)
from chainlake.paths import Home
from chainlake.report.kept import notes_of
from chainlake.terminal import json_visible, one_line, table_lines
from chainlake.words import counted

HELP = (
    "Show for every pattern and model which days are done, missing (never computed), stale (with what changed), "
    "following (for a model: an earlier day is due, which may make them stale), failed, audit_failed, retired, "
    "waiting for files, for an ingest or for an earlier day, or suspect because somebody else has written to their "
    "table. Also show which landed files, definitions or tables need attention. Consecutive days in the same state "
    "share one line. TO is excluded."
)
EXAMPLE = (
    "  chainlake status\n"
    "  chainlake status 2025-10-01 2025-10-08 --state stale --state failed\n"
    "  chainlake status --definition pattern/NAME --json"
)

_ONE = timedelta(days=1)


@dataclass
class Span:
    """Consecutive days of a definition in the same state; ``rows`` is the number of rows published on all of them."""

    definition: str
    start: date
    end: date
    state: State
    why: str
    rows: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add days, definitions and states to show, and the output format."""
    parser.add_argument("start", nargs="?", metavar="FROM", help="first day, YYYY-MM-DD (UTC); default: all days")
    parser.add_argument("end", nargs="?", metavar="TO", help="day after the last")
    parser.add_argument(
        "--definition",
        action="append",
        metavar="NAME",
        type=name_of("pattern", "model"),
        help="pattern/NAME, episodes/NAME, ranked/NAME or model/NAME; may be repeated",
    )
    parser.add_argument("--state", action="append", choices=STATES, help="only these states; may be repeated")
    parser.add_argument("--json", action="store_true", help="one JSON object with every day")


def run(args: argparse.Namespace) -> int:
    """Print the status; the exit code is 0 whatever it is, but 1 if ingested sources are gone from the lake."""
    if (args.start is None) != (args.end is None):
        raise OptionsClash.one_day_only()
    arrow_without_pandas()
    home = Home.from_env()
    days = Days.parse(args.start, args.end) if args.start else None
    lost = [one.lost(home) for one in forgotten(home)]
    recorded = RecordedFiles.of(home)
    judged, models, notes = judge_all(home, days, args.definition, recorded)
    states = tuple(args.state or STATES)
    notes += lost + left_files(home, recorded) + untaken_files(home, recorded)
    notes += not_ingested(home, judged, all_definitions=args.definition is None)
    notes += cut_off_attempts(home, judged, days, all_definitions=args.definition is None)
    notes += _unobserved(home, judged, models) + notes_of(home)
    if args.json:
        _print_json(judged, states, notes)
    else:
        _print(judged, states, notes)
    return 1 if lost else 0


def _unobserved(home: Home, judged: Sequence[Judged], models: Sequence[LoadedModel]) -> list[str]:
    """A line for each model that names a key which no event has, since its node or whole group has no rounds."""
    last = {one.name: one.day(int(done[-1])) for one in judged if len(done := np.flatnonzero(one.state == "done"))}
    concerned = [model for model in models if model.definition.name in last]
    return KeptStates(home, [model.config.name for model in concerned]).unobserved(concerned, last) if concerned else []


def spans(judged: Judged, states: Sequence[str]) -> list[Span]:
    """The days of a definition in one of ``states``; consecutive days that are alike make one span."""
    positions = np.flatnonzero(np.isin(judged.state, states))
    if not len(positions):
        return []
    starts = np.flatnonzero(~judged.alike(positions))
    rows = np.add.reduceat(judged.rows(positions), starts).tolist()
    found: list[Span] = []
    for first, last, total in zip(starts, [*(starts[1:] - 1), len(positions) - 1], rows, strict=True):
        row, end = judged.row(int(positions[first])), judged.day(int(positions[last])) + _ONE
        before = found[-1] if found else None
        alike = (row.day, row.state, row.why)
        if before is not None and (before.end, before.state, before.why) == alike:
            before.end, before.rows = end, before.rows + total
        else:
            found.append(Span(row.definition, row.day, end, row.state, row.why, total))
    return found


def _print(judged: Sequence[Judged], states: Sequence[str], notes: Sequence[str]) -> None:
    header = ("definition", "from", "to", "days", "state", "rows", "why")
    lines: list[tuple[str, ...]] = []
    for item in judged:
        for span in spans(item, states):
            count = str((span.end - span.start).days)
            lines.append((span.definition, str(span.start), str(span.end), count, span.state, str(span.rows), span.why))
    if lines:
        print("\n".join(table_lines(header, lines)))
    counts: Counter[str] = Counter()
    for item in judged:
        counts.update(item.state.tolist())
    days = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    print(f"{counted(len(judged), 'definition')}, {f'days: {days}' if days else 'no days yet'}")
    for note in notes:
        print(one_line(note))


def _print_json(judged: Sequence[Judged], states: Sequence[str], notes: Sequence[str]) -> None:
    """Print one object with a line per day; one query makes all lines, since there can be hundreds of thousands."""
    import duckdb

    parts = (item.table(np.flatnonzero(np.isin(item.state, states))) for item in judged)
    with duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"}) as texts:
        texts.register("status", united(parts))
        # DuckDB keeps the order of the rows: by definition and day.
        lines = texts.sql("SELECT to_json(status)::VARCHAR AS line FROM status").to_arrow_table()["line"].to_pylist()
    print('{"days": [', end="")
    if lines:
        print("\n" + ",\n".join(json_visible(line) for line in lines), end="")
    print(f'\n], "notes": {json_visible(json.dumps(list(notes)))}}}')
