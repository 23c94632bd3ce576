"""``chainlake backtest``: how well a pattern finds known occurrences, with which parameters; no lake."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainlake.cli.errors import BadOption
from chainlake.cli.inputs.event_files import add_column_arguments, compiled, pattern_text, read, with_type
from chainlake.cli.tables import FORMATS
from chainlake.cli.zones import add_zone_argument, shown_zone
from chainlake.definitions.duration import parse_span
from chainlake.paths import Home
from chainlake.words import counted

if TYPE_CHECKING:
    from chainlake.pictures.backtest import ScoredSetting

HELP = (
    "Search files with several values of a pattern's parameters, and score the results against labelled "
    "occurrences. Labels are a CSV file with the column start and, optionally, end and key (times without an offset "
    "are in --zone, by default the source's zone). Matches of one key that are no further apart than --slack are "
    "one alarm. An alarm is true if it overlaps a label of its key, within the slack. The output gives, per "
    "setting: matches, alarms, precision (the share of alarms that are true), recall (the share of labels with an "
    "alarm), and the median delay from a label's start to the first decision (negative if the decision came first). "
    "--picture draws precision against recall, and what each setting finds. Files are read as in match."
)
EXAMPLE = (
    "  chainlake backtest breakdown data/traffic/*.csv.gz --source traffic --labels incidents.csv \\\n"
    "      --grid slow=30..50:5 --grid free=55,60 --slack '15 min' --picture breakdown.svg"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the pattern, the files, the labels and the parameters."""
    parser.add_argument("pattern", metavar="PATTERN", help="a name, a file, or a query that begins with PATTERN")
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="files of events")
    parser.add_argument("--labels", metavar="FILE", type=Path, required=True, help="CSV: start, end, key")
    parser.add_argument(
        "--grid", metavar="NAME=LOW..HIGH:N", action="append", default=[],
        help="values of a parameter: N values from LOW to HIGH, or NAME=a,b,c; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--slack",
        metavar="DURATION",
        default="0 s",
        help="longest gap within an alarm, and tolerance around a label; default: 0 s",
    )
    parser.add_argument("--format", choices=tuple(FORMATS), default="table", help="default: table")
    parser.add_argument("--picture", metavar="FILE", type=Path, help="draw the settings into this file: .png or .svg")
    add_zone_argument(parser, "zone of the labels' times that have no offset")
    add_column_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print a row per setting, as soon as it is computed."""
    from chainlake.cep.backtest import alarms_of, score
    from chainlake.cep.library import from_table
    from chainlake.cep.search.find import find
    from chainlake.cli.inputs.labels import read_labels, settings_of

    slack = parse_span(args.slack)
    if slack is None:
        raise BadOption.no_duration("--slack", args.slack)
    settings = list(settings_of(args.grid))
    text = pattern_text(args.pattern)
    events = read(args, args.files, text[0])
    pattern = compiled(*text, events)
    for name in settings[0]:
        if name not in pattern.front.params:
            raise BadOption.parameter("--grid", name, sorted(pattern.front.params))
    labels = read_labels(args.labels, shown_zone(Home.from_env(), args.zone, args.source or pattern.source))
    table, _ = from_table(with_type(events.table, pattern))
    keys = table[events.key] if events.key in table.column_names else None
    slack_us = int(slack.total_seconds() * 1e6)

    drawn: list[ScoredSetting] = []

    def rows() -> Iterator[Sequence[Any]]:
        for setting in settings:
            one = compiled(*text, events, setting) if setting else pattern
            matches, alarms = alarms_of(find(one, table), keys, slack_us)
            scored = score(matches, alarms, labels, slack_us)
            drawn.append((setting, scored))
            shares = [None if share is None else round(share, 4) for share in (scored.precision, scored.recall)]
            yield [
                *setting.values(),
                scored.matches,
                scored.alarms,
                scored.true_alarms,
                scored.found,
                *shares,
                scored.delay_s,
            ]

    head = [*settings[0], "matches", "alarms", "true alarms", "labels found", "precision", "recall", "delay (s)"]
    FORMATS[args.format](head, rows(), sys.stdout)
    print(counted(len(labels), "label"), file=sys.stderr)
    if args.picture is not None:
        from chainlake.pictures.backtest import draw_backtest

        draw_backtest(drawn, f"{pattern.name}: {counted(len(labels), 'label')}, slack {args.slack}", args.picture)
        print(f"picture: {args.picture}", file=sys.stderr)
    return 0
