"""``chainlake picture``: draws a model over some days as one PNG; no Spark, nothing is published."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from chainlake.cli.errors import BadOption, DrawnElsewhere, NoRounds, OptionsClash
from chainlake.cli.named import name_of
from chainlake.days import Days, us_of
from chainlake.paths import Home

if TYPE_CHECKING:
    import pyarrow as pa

    from chainlake.model_change.days.traces import GroupTrace
    from chainlake.monitoring.model_days import Model, Published
    from chainlake.pictures.model import Shown

HELP = (
    "Draw a model over days as one PNG: its coefficients, its error against eps with the marks of syncs and "
    "changes, and messages and changes per day. For a model that is a curve along one column (a road's speeds), "
    "also draw the curve and the readings of the window at chosen times. Changes and messages are the published "
    "ones if all days are up to date; what the tables do not hold is recomputed from the events, starting at the "
    "last good state. For a model of another kind, draw its rows: who reported, losses, or scores, and what was "
    "sent."
)
EXAMPLE = (
    "  chainlake picture i5n_speed_profile 2025-10-01 2025-10-05\n"
    "  chainlake picture i5n_speed_profile 2025-10-02 2025-10-03 --at 2025-10-02T21:30 --out queue.png"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add MODEL FROM TO, the group, the times, the file."""
    parser.add_argument(
        "model", metavar="MODEL", type=name_of("model"), help="name of the model: a file of dags/config/models/"
    )
    parser.add_argument("start", metavar="FROM", help="first day, YYYY-MM-DD (UTC)")
    parser.add_argument("end", metavar="TO", help="day after the last, YYYY-MM-DD (UTC)")
    parser.add_argument("--group", metavar="NAME", help="which group, if the model has several")
    parser.add_argument(
        "--at", action="append", metavar="TIME", default=[],
        help="draw the curve of this round, YYYY-MM-DDTHH:MM (UTC); may be repeated (default: the largest changes)",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: MODEL_FROM_TO.png")


def run(args: argparse.Namespace) -> int:
    """Draw the picture, and say where it is."""
    from chainlake.model_change.days.traces import trace_group
    from chainlake.monitoring.model_days import beginning, find_model, linear, published, read_rounds
    from chainlake.pictures.model import draw_model, largest_changes, profile_feature, shown_by_trace

    home, days = Home.from_env(), Days.parse(args.start, args.end)
    models, patterns = home.config / "models", home.config / "patterns"
    if not (models / f"{args.model}.yaml").exists() and (patterns / f"{args.model}.sase").exists():
        raise DrawnElsewhere.pattern(args.model)
    any_kind = find_model(home, args.model)
    model = linear(any_kind)
    group = _group(any_kind, args.group)
    out = args.out or file_of(args.model, group, days)
    if model is None:
        _draw_rows(home, any_kind, group, days, (args.at, out))
        return 0
    if args.at and profile_feature(model.config) is None:
        raise OptionsClash.moments_without_curve(args.model)
    moments = [_moment(text, days) for text in args.at]
    first, states = beginning(home, model, days.start)
    if first >= days.end:
        raise NoRounds.none_yet(args.model, days, first)
    reduced = read_rounds(home, model, Days(first, days.end))
    trace = trace_group(model.config, group, reduced, first, days.end, states.get(group))
    first_us, end_us = days.micros()
    if not (trace.ts >= first_us).any():
        raise NoRounds.none_complete(args.model, days)
    rows = published(home, model, days)
    shown = shown_by_trace(trace, first_us) if rows is None else _shown(rows, group)
    chosen = [_row(trace, moment) for moment in moments] or largest_changes(trace, first_us)
    draw_model(trace, shown, first_us, end_us, chosen, out)
    print(f"{out}: {args.model} {days}, {len(shown.marks)} marks {shown.origin}, coefficients and errors recomputed")
    return 0


def file_of(model: str, group: str, days: Days) -> Path:
    """The file that is written if none is named; a group's name may hold what separates folders."""
    parts = (model, group.replace(os.sep, "_"), str(days.start), str(days.end))
    return Path("_".join(part for part in parts if part) + ".png")


def _draw_rows(home: Home, model: Model[Any], group: str, days: Days, asked: tuple[list[str], Path]) -> None:
    """Draw a model of another kind from its rows, either published or recomputed."""
    from chainlake.model_change.days.definitions import result_table
    from chainlake.model_change.days.replay import GroupRun, run_days
    from chainlake.monitoring.model_days import beginning, published, read_rounds
    from chainlake.pictures.companions import draw_rows

    (moments, out), config = asked, model.config
    if moments:
        raise OptionsClash.moments_without_curve(config.name)
    first, states = beginning(home, model, days.start)
    if first >= days.end:
        raise NoRounds.none_yet(config.name, days, first)
    rows, table = published(home, model, days), result_table(config)
    if rows is not None:
        found, metrics, origin = rows.found.to_pylist(), rows.metrics.to_pylist(), "as published"
    else:
        reduced = read_rounds(home, model, Days(first, days.end))
        gave = run_days(GroupRun(config, group, first, days.end, states.get(group)), reduced, every_state=False)
        found, metrics, origin = gave.found, gave.metrics, "recomputed"
    mine = [row for row in found if row.get("group_id", "") == group and _day(row, table.day_column) in days]
    chosen = [row for row in metrics if row["group_id"] == group and row["day"] in days]
    if not chosen:
        raise NoRounds.none_complete(config.name, days)
    name = config.name + (f", group {group}" if group else "")
    draw_rows(table.path_name, f"{name}, {days}; {origin}; UTC", mine, chosen, out)
    print(f"{out}: {config.name} {days}, {len(mine)} rows of {table.path_name} {origin}")


def _day(row: dict[str, Any], column: str) -> date:
    found: date = row[column]
    return found.date() if isinstance(found, datetime) else found


def _group(model: Model[Any], asked: str | None) -> str:
    groups: list[str] = list(model.config.groups)
    if asked is None and len(groups) == 1:
        return groups[0]
    if asked is None or asked not in groups:
        raise BadOption.group(model.config.name, asked, groups)
    return asked


def _moment(text: str, days: Days) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadOption.no_time("--at", text) from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    us = us_of(moment)
    lo, hi = days.micros()
    if not lo <= us < hi:
        raise BadOption.outside("--at", text, days)
    return us


def _row(trace: GroupTrace, us: int) -> int:
    """The last round that had begun at a time."""
    row = int(np.searchsorted(trace.ts, us, side="right")) - 1
    if row < 0 or not np.isfinite(trace.coefficients[row]).all():
        raise NoRounds.before("--at")
    return row


def _shown(rows: Published, group: str) -> Shown:
    """Published rows as marks and messages."""
    from chainlake.pictures.model import Mark, Shown

    def mine(table: pa.Table) -> list[dict[str, Any]]:
        return [row for row in table.to_pylist() if row["group_id"] == group]

    marks = [Mark(us_of(row["ts"]), row["kind"], bool(row["exceeded"])) for row in mine(rows.found)]
    messages = [(row["day"], row["normalized_up"], row["changes"]) for row in mine(rows.metrics)]
    return Shown(sorted(marks, key=lambda mark: mark.us), sorted(messages, key=lambda row: row[0]), "as published")
