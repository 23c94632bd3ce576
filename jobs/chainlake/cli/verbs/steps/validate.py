"""``chainlake validate``: runs the quality suites on published tables."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import date
from itertools import chain
from typing import TYPE_CHECKING

from chainlake.cli.named import name_of
from chainlake.days import Days
from chainlake.paths import Home
from chainlake.words import counted

if TYPE_CHECKING:
    from chainlake.quality import Audit
    from chainlake.quality.published import Outcome

HELP = (
    "Compare the tables of a source with what was written to them ('check' does so for all tables). Run the quality "
    "suites on what is published: accounting of the source, its matches, episodes and rankings, findings and "
    "metrics of its models. Print each result, build Data Docs, and exit with 1 if anything is broken."
)
EXAMPLE = "  chainlake validate stock 2013-10-07 2013-10-10"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add SOURCE FROM TO."""
    parser.add_argument(
        "source", metavar="SOURCE", type=name_of("source"), help="name of the source: a file of dags/config/sources/"
    )
    parser.add_argument("start", metavar="FROM", help="first day, YYYY-MM-DD (UTC)")
    parser.add_argument("end", metavar="TO", help="day after the last, YYYY-MM-DD (UTC)")


def run(args: argparse.Namespace) -> int:
    """Print one line per table, and one per broken day.

    Raises:
        DefinitionError: a pattern or model of the source cannot be read; raised after all others were validated.
    """
    from chainlake.quality import Audit, warm_up
    from chainlake.run.common import raise_together

    days = Days.parse(args.start, args.end)
    home = Home.from_env()
    warm_up()
    audit = Audit(home)
    broken = 0
    unread: list[tuple[str, BaseException]] = []
    contents = _contents(home, args.source, days)
    for outcome in chain(contents, _outcomes(audit, args.source, days, unread)):
        broken += len(outcome.broken)
        state = "BROKEN" if outcome.broken else "ok" if outcome.days else "nothing published"
        print(f"{outcome.what}: {state}, {counted(len(outcome.days), 'day')}")
        for day, why in sorted(outcome.broken.items()):
            print(f"  {day}: {why}")
    print(f"Data Docs: {audit.build_docs()}")
    raise_together(unread, "all others were validated")
    return 1 if broken else 0


def _contents(home: Home, source_name: str, days: Days) -> Iterator[Outcome]:
    """Check that the tables of a source and of its definitions hold what was written to them; no JVM.

    There is one result if all tables do, or else one for each table that does not.
    """
    from chainlake.lake.records import ops
    from chainlake.lake.upkeep.findings import EventDay, PublishedDay
    from chainlake.operations.check import Scope, look
    from chainlake.quality.published import Outcome
    from chainlake.run.common import raise_together

    found = look(home, Scope(within=days, source=source_name, definitions=_definitions(home, source_name)))
    raise_together(found.failures, f"{found.tables} tables compared")
    listed = tuple(row["day"] for row in ops.current(home, "event_days", source=source_name) if row["day"] in days)
    broken: dict[str, dict[date, str]] = {}
    for one in found.damage:
        day = next((m.day for m in one.fixes if isinstance(m, PublishedDay | EventDay)), days.start)
        whys = broken.setdefault(one.table, {})
        whys[day] = f"{whys[day]}; {one.what}" if day in whys else one.what
    for table, whys in sorted(broken.items()):
        yield Outcome(f"contents of {table}", listed, whys)
    if not broken:
        yield Outcome(f"contents of the tables of {source_name}", listed, {})


def _definitions(home: Home, source_name: str) -> tuple[str, ...]:
    """Names of the patterns and models of a source."""
    from chainlake.catalog.installed import Installed
    from chainlake.run.common import the_source

    _, sources = the_source(home, source_name)
    found = Installed.load(home, sources).definitions
    return tuple(sorted(one.name for one in found if one.source == source_name))


def _outcomes(audit: Audit, source_name: str, days: Days, unread: list[tuple[str, BaseException]]) -> Iterator[Outcome]:
    """All results of a source; no JVM.

    Definitions that cannot be read, and so cannot be validated, are added to ``unread``.
    """
    from chainlake.catalog.installed import Installed
    from chainlake.detect.episodes.validated import validate_episodes
    from chainlake.detect.rankings.validated import validate_rankings
    from chainlake.quality import published
    from chainlake.run.common import the_source

    home = audit.home
    _, sources = the_source(home, source_name)
    installed = Installed.load(home, sources)
    for kind, bad in installed.broken.items():
        unread += [(f"{kind}/{b.name}", b.error) for b in bad if b.source in (source_name, None)]
    patterns = [c for c in installed.patterns if c.definition.source == source_name]
    models = [m for m in installed.models if m.definition.source == source_name]
    yield published.accounting(audit, source_name, days)
    yield from published.matches(audit, patterns, days)
    yield from validate_episodes(audit, patterns, days)
    yield from validate_rankings(audit, patterns, days)
    yield from published.models(audit, models, days)
