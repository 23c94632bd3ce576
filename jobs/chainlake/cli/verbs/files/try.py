"""``chainlake try``: runs a model of any kind over files; no Spark, no lake, nothing is written."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainlake.cli.errors import IsPattern, NoRounds
from chainlake.cli.named import UnknownName, definition_file, definition_files
from chainlake.cli.tables import FORMATS
from chainlake.cli.zones import add_zone_argument, shown_zone
from chainlake.days import day_of_us, us_of
from chainlake.definitions.source import load_sources
from chainlake.paths import Home
from chainlake.words import counted

if TYPE_CHECKING:
    from chainlake.catalog.models import LoadedModel
    from chainlake.model_change.library import MonitorResult

HELP = (
    "Run a model, or a monitor of another kind, over files as they land for its source. Print what it finds "
    "(changes with the coefficients before and after, alerts, reports of nodes, losses of learners, scores of "
    "machines), and what each day cost. try does for models what match does for patterns. Local times of the source "
    "are shown beside UTC. The first window begins with the first day of the files, whatever 'start' says. Keys of "
    "the model that no event has are listed on stderr. No Spark and no lake; nothing is published."
)
EXAMPLE = (
    "  chainlake try i5n_speed_profile data/traffic/d12_station_5min_2025_10_0*.csv.gz\n"
    "  chainlake try dags/config/models/NAME.yaml readings.csv --format csv\n"
    "  chainlake try bac_beta data/stock/*.csv.gz --metrics --format json"
)
#: Columns of ``models.metrics`` that a table shows; the other formats have all of them.
_METRICS = ("day", "group_id", "rounds", "rounds_skipped", "changes", "syncs", "max_error", "r2")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the model, the files, and what is printed."""
    parser.add_argument("model", metavar="MODEL", help="name of a model, or its file")
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="files as they land for its source")
    parser.add_argument(
        "--metrics", action="store_true", help="print one row per day with all counts, instead of what it finds"
    )
    parser.add_argument("--format", choices=tuple(FORMATS), default="table", help="default: table")
    add_zone_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print what the model finds."""
    from chainlake.catalog.models import load_one
    from chainlake.cli.inputs.landed_files import read_landed
    from chainlake.cli.printed_findings import flagged_only, printed_findings
    from chainlake.model_change.days.definitions import result_table
    from chainlake.model_change.library import monitor

    home = Home.from_env()
    model = load_one(_file_of(home, args), load_sources(home))
    zone = shown_zone(home, args.zone, model.source.name)
    events = read_landed(model.source.name, args.files)
    if not len(events):
        raise NoRounds.no_events(model.config.name)
    _print_unobserved(model, set(events[model.source.key].to_pylist()))
    first = day_of_us(us_of(min(events["ts"].to_pylist())))
    result = monitor(replace(model.config, start=first), events, key=model.source.key)
    for warning in result.warnings:
        print(f"note: {warning}", file=sys.stderr)
    if args.metrics:
        columns, rows = _metrics(result, result.metrics.column_names)
        FORMATS[args.format](columns, iter(rows), sys.stdout)
        return 0
    columns, findings = printed_findings(result_table(model.config), result.found, zone)
    if args.format != "table":
        FORMATS[args.format](columns, iter(findings), sys.stdout)
        return 0
    (columns, findings), others = flagged_only((columns, findings))
    FORMATS["table"](columns, map(_short, findings), sys.stdout)
    if others:
        print(f"and {counted(others, 'day')} of machines that are not flagged, which --format csv has, too")
    print()
    columns, rows = _metrics(result, _METRICS)
    FORMATS["table"](columns, map(_short, rows), sys.stdout)
    return 0


def _file_of(home: Home, args: argparse.Namespace) -> Path:
    """The file of the model.

    Raises:
        UsageError: there is no such model; if it is a pattern, the error says what runs one.
    """
    try:
        file = definition_file(home, args.model, "model")
    except UnknownName as error:
        if args.model in {one.stem for one in definition_files(home, "pattern")}:
            raise IsPattern.of(args.model, args.files) from error
        raise
    if file.suffix == ".sase":
        raise IsPattern.of(args.model, args.files)
    return file


def _short(row: Sequence[Any]) -> list[Any]:
    """The row with numbers rounded for a reader; the other formats have all digits."""
    return [f"{value:.5g}" if isinstance(value, float) else value for value in row]


def _print_unobserved(model: LoadedModel, observed: set[str]) -> None:
    """Say which keys of the model no event has, since their nodes have no rounds."""
    from chainlake.cep.lint.findings import key_hint

    for key in model.config.all_keys:
        if key not in observed:
            hint = key_hint(key, observed)
            print(f"note: no event in these files has the {model.source.key} '{key}'. {hint}", file=sys.stderr)


def _metrics(result: MonitorResult, names: Sequence[str]) -> tuple[list[str], list[Sequence[Any]]]:
    return list(names), [list(row.values()) for row in result.metrics.select(list(names)).to_pylist()]
