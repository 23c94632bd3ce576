"""``chainlake explain``: what a pattern means to the engine; no Spark, no lake."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from zoneinfo import ZoneInfo

from chainlake.cli.errors import BadOption, NotIngested, OptionsClash
from chainlake.cli.inputs.event_files import add_column_arguments, compiled, pattern_text, read, says_columns, with_type
from chainlake.cli.inputs.source_events import ingested, of_source
from chainlake.days import Days
from chainlake.lake.engine import VARIABLE, asked_engine, engine_of
from chainlake.operations.searched import last_search
from chainlake.paths import Home

if TYPE_CHECKING:
    import pyarrow as pa

    from chainlake.cep.pattern import Pattern
    from chainlake.definitions.source import Source

    #: A pattern, its source, and the events that it is explained with.
    _Given: TypeAlias = tuple[Pattern, Source | None, pa.Table | None]

HELP = (
    "Show how a pattern is searched: its normal form, the states and edges of its automaton with the condition of "
    "each step, where it looks for events, what a run reads, when a match is decided, and a Mermaid picture. "
    "--simulate also estimates the cost of each order on the events of these files, and counts what a run in time "
    "order costs: evaluations of events and sets (E), of forbidden events (E_neg), of single members of sets "
    "(E_pre); peaks of instances (waiting: I_rest, at any moment: I_dfs), of buffered events (B_in), of events in "
    "buffers or instances (B_all), of a tree's states. If it will take long, a note on stderr says so beforehand. "
    "--near-misses FROM TO searches the source's events from day FROM up to, but not including, day TO. For each "
    "step it shows how many candidates each condition rejected, with examples."
)
EXAMPLE = (
    "  chainlake explain dags/config/patterns/NAME.sase\n"
    "  chainlake explain dags/config/patterns/NAME.sase --simulate readings.csv --id reading --ts time\n"
    "  chainlake explain dags/config/patterns/NAME.sase --near-misses 2025-10-01 2025-10-02"
)

#: A simulation that will take more seconds than this is announced beforehand.
WORTH_SAYING = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the pattern, the order, and files of events."""
    parser.add_argument(
        "pattern", metavar="PATTERN", help="a pattern: its name, its file, or a query that begins with PATTERN"
    )
    parser.add_argument(
        "--order", metavar="NAMES", help="binding order to show, such as c,a,b (default: the order a run uses)"
    )
    parser.add_argument("--simulate", metavar="FILE", nargs="+", type=Path, help="files of events, as match reads them")
    parser.add_argument(
        "--first", metavar="N", type=int, help="simulate only the first N events of the files, in time order"
    )
    parser.add_argument(
        "--near-misses",
        metavar=("FROM", "TO"),
        nargs=2,
        help="search these days of the source's ingested events (TO is excluded) and show what was nearly a match",
    )
    add_column_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the explanation."""
    from chainlake.cep.explain.report import chosen_orders, explain, mermaid

    order = None if args.order is None else [name.strip() for name in args.order.split(",")]
    days = None if args.near_misses is None else Days.parse(*args.near_misses)
    pattern, source, events = _of_lake(args, days) if args.simulate is None else _of_files(args, days)
    choices = chosen_orders(pattern, order, events)
    print("\n".join(explain(pattern, choices)))
    if pattern.front.source is not None:
        home = Home.from_env()
        print(f"matches are published by the back end {engine_of()} ({VARIABLE} is {asked_engine()})")
        searched = None if pattern.extras.ranking is None else last_search(home, pattern.name)
        if searched is not None:
            print(searched)
    print("\n```mermaid", *mermaid(choices), "```", sep="\n", flush=True)
    if args.simulate is not None:
        _print_costs(pattern, events, order)
    if days is not None and source is not None and events is not None:
        from chainlake.cep.explain.described import describe
        from chainlake.cep.explain.near_misses import near_misses

        print(f"\nnear misses of {days}, {len(events):,} events read")
        zone = None if source.zone == "UTC" else ZoneInfo(source.zone)
        reports = near_misses(pattern, events, [choice.plan for choice in choices], days.micros())
        print("\n".join(describe(pattern, events, reports, source.key, zone)))
    return 0


def _of_lake(args: argparse.Namespace, days: Days | None) -> _Given:
    """The pattern, its source, and the source's events on the days, if days are asked for."""
    if args.source or says_columns(args):
        raise OptionsClash.columns_without_files()
    if args.first is not None:
        raise OptionsClash.first_without_files()
    pattern, source = of_source(*pattern_text(args.pattern))
    if days is None:
        return pattern, source, None
    if source is None:
        raise NotIngested.no_source()
    return pattern, source, ingested(source, pattern, days)


def _of_files(args: argparse.Namespace, days: Days | None) -> _Given:
    """The pattern, and the events of the files to simulate; None if they hold none."""
    from chainlake.cep.explain.report import beginning
    from chainlake.cep.library import from_table

    if days is not None:
        raise OptionsClash.days_and_files()
    text = pattern_text(args.pattern)
    found = read(args, args.simulate, text[0])
    pattern = compiled(*text, found)
    events = from_table(with_type(found.table, pattern))[0] if len(found.table) else None
    if args.first is not None:
        if args.first < 1:
            raise BadOption.too_few("--first")
        events = None if events is None else beginning(events, args.first)
    return pattern, None, events


def _print_costs(pattern: Pattern, events: pa.Table | None, order: list[str] | None) -> None:
    from chainlake.cep.explain.report import costs, forecast

    print()
    if events is None:
        print("the files hold no events")
        return
    seconds = forecast(pattern, events, order)
    if seconds > WORTH_SAYING:
        print(
            f"the run in time order over {len(events):,} events will take about {_about(seconds)}; "
            "--first N takes the first N events only",
            file=sys.stderr,
            flush=True,
        )
    print("\n".join(costs(pattern, events, order)))


def _about(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
