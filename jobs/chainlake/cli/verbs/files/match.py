"""``chainlake match``: finds a pattern in plain files; no Spark, no lake."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainlake.cli.errors import OptionsClash
from chainlake.cli.inputs.event_files import add_column_arguments, compiled, pattern_text, read, with_type
from chainlake.cli.tables import FORMATS, flat
from chainlake.cli.zones import add_zone_argument, shown_zone
from chainlake.paths import Home
from chainlake.terminal import json_visible
from chainlake.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from chainlake.cep.pattern import Pattern
    from chainlake.cep.plain_files.read import Events
    from chainlake.cep.search.found.batch import MatchBatch
    from chainlake.cep.search.statistics import Statistics
    from chainlake.cli.printed_matches import Rows

HELP = (
    "Find a pattern in files of events and print each match as one JSON line (name: event id, or a list of ids for "
    "a repeated name). --format table, csv, json or vertical also prints times and what the pattern mentions of "
    "each event, with local times beside UTC if a zone is known. PATTERN is a name, a file or the query itself; a "
    "query needs no front matter. FILEs are JSON lines, CSV or Parquet, plain or gzipped. With --source NAME they "
    "are read as landed files of that source, with its rules for bad rows, duplicates, conflicts and revisions. An "
    "event without an id gets the id FILE:ROW; with --source every event gets the id FILE:LINE of its row. A CSV "
    "column holds numbers if every cell that is not blank is a number, otherwise text; if that decides a condition "
    "of the pattern, a note on stderr names the cell. --type-of overrides this. --episodes prints the episodes of a "
    "pattern that says EPISODES, one per line: key, start, end, when it is decided, the number of matches, and the "
    "first and the top match. --near-misses prints how many candidates each condition rejected, with examples. If "
    "nothing matches, a note on stderr says how many events fit each name on its own."
)
EXAMPLE = (
    "  chainlake match dags/config/patterns/NAME.sase readings.csv --id reading --ts time\n"
    "  chainlake match shakeout data/stock/us_equity_minute_trade_20131007.csv.gz --source stock --format table\n"
    "  chainlake match dags/config/patterns/NAME.sase daily.csv --type-of ts=date:%Y%m%d --missing NA\n"
    '  chainlake match "PATTERN SEQ(Login a, Alarm b) WHERE a.user = b.user WITHIN 5 min" events.jsonl'
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the pattern, the files, the names of their columns, and what is printed."""
    parser.add_argument("pattern", metavar="PATTERN", help="a name, a file, or a query that begins with PATTERN")
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="files of events")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--episodes", action="store_true", help="print the episodes instead of the matches")
    choice.add_argument("--near-misses", action="store_true", help="print what was nearly a match instead, and why")
    parser.add_argument(
        "--format", choices=("lines", *FORMATS), default="lines", help="default: lines (JSON lines with only ids)"
    )
    parser.add_argument(
        "--stats", action="store_true", help="print on stderr, as one JSON line, how the search ran and what it cost"
    )
    add_zone_argument(parser)
    add_column_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the matches."""
    from chainlake.cep.episodes.found import check_episodes, merged_matches
    from chainlake.cep.library import as_dicts, from_table
    from chainlake.cep.search.find import find
    from chainlake.cep.search.statistics import Statistics
    from chainlake.cli.printed_matches import printed_rows

    if args.format != "lines" and (args.episodes or args.near_misses):
        raise OptionsClash.format_of_matches()
    if args.zone is not None and args.format == "lines" and not args.near_misses:
        raise OptionsClash.zone_without_times()
    text = pattern_text(args.pattern)
    events = read(args, args.files, text[0])
    pattern = compiled(*text, events)
    zone = shown_zone(Home.from_env(), args.zone, args.source or pattern.source)
    if args.episodes:
        check_episodes(pattern)
    if not len(events.table):
        if args.format != "lines":
            _print_rows(args.format, printed_rows(pattern, (events.table, []), iter(()), events.key, zone))
        print("note: the files hold no events", file=sys.stderr)
        return 0
    table, ids = from_table(with_type(events.table, pattern))
    if args.near_misses:
        print("\n".join(_near_misses(pattern, table, _key(events, table), zone)))
        return 0
    statistics = Statistics()
    batches = _Counted(find(pattern, table, statistics=statistics))
    if args.episodes:
        _print(merged_matches(pattern, table, ids, list(batches)))
    elif args.format == "lines":
        for batch in batches:
            _print(as_dicts(pattern, batch, ids))
    else:
        _print_rows(args.format, printed_rows(pattern, (table, ids), iter(batches), _key(events, table), zone))
    if not batches.matches:
        print(f"note: {_nothing(pattern, table)}", file=sys.stderr)
    sys.stdout.flush()
    if args.stats:
        print(json.dumps(_counts(statistics)), file=sys.stderr)
    return 0


def _print_rows(form: str, found: Rows) -> None:
    """Print matches as rows of a table."""
    columns, rows = list(found.columns), iter(found.rows)
    if form != "json":
        columns, rows = flat(found.columns, found.fields, found.rows)
    FORMATS[form](columns, rows, sys.stdout)


def _counts(counted: Statistics) -> dict[str, Any]:
    """What a search did, under the names of columns of ``ops.plans``."""
    names = ("matches", "evaluations", "evaluations_neg", "evaluations_pre", "pair_evals", "pair_memo_hits")
    numbers: dict[str, Any] = {name: getattr(counted, name) for name in names}
    orders = [" ".join(order) for order in counted.order]
    backends = [f"{backend}: {why}" for backend, why in counted.backends]
    return {"join_order": orders, "how": counted.how, "backend": backends, **numbers}


class _Counted:
    """Passes batches on, and counts their matches."""

    def __init__(self, batches: Iterable[MatchBatch]) -> None:
        self._batches = batches
        self.matches = 0

    def __iter__(self) -> Iterator[MatchBatch]:
        for batch in self._batches:
            self.matches += batch.n
            yield batch


def _key(events: Events, table: pa.Table) -> str | None:
    """The key column, if the events have it."""
    return events.key if events.key in table.column_names else None


def _nothing(pattern: Pattern, events: pa.Table) -> str:
    """A hint why there is no match: how many events each name could be bound to by itself."""
    from chainlake.cep.explain.near_misses import alone
    from chainlake.cep.explain.report import chosen_orders

    stages = [
        stage for branch in alone(pattern, events, [one.plan for one in chosen_orders(pattern)]) for stage in branch
    ]
    parts = dict.fromkeys(f"{stage.left:,} of {stage.entered:,} {stage.what}" for stage in stages)
    return (
        f"0 matches in {len(events):,} events; events that fit on their own: {'; '.join(parts)}. --near-misses shows "
        "what rejected "
        "them."
    )


def _near_misses(pattern: Pattern, events: pa.Table, key: str | None, zone: tzinfo | None) -> Sequence[str]:
    from chainlake.cep.explain.described import describe
    from chainlake.cep.explain.near_misses import everything, near_misses
    from chainlake.cep.explain.report import chosen_orders

    plans = [choice.plan for choice in chosen_orders(pattern, None, events)]
    reports = near_misses(pattern, events, plans, everything(pattern, events))
    lines = describe(pattern, events, reports, key, zone, "in these files")
    return [f"near misses in {counted(len(events), 'event')}", *lines]


def _print(found: Iterable[dict[str, Any]]) -> None:
    lines = (json.dumps(one, default=str) + "\n" for one in found)
    sys.stdout.writelines(map(json_visible, lines))
