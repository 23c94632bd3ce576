"""``python -m jobs validate``: the quality suites on published tables."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobs.days import Days
from jobs.paths import Home
from jobs.words import counted

if TYPE_CHECKING:
    from jobs.quality import Audit
    from jobs.quality.published import Outcome

HELP = (
    "Run the quality suites on what is published: accounting of the source, its match tables, changes and metrics of "
    "its models. Prints each result, builds Data Docs, and exits with 1 if anything is broken."
)
EXAMPLE = "  python -m jobs validate stock 2013-10-07 2013-10-10"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """SOURCE FROM TO."""
    parser.add_argument("source", metavar="SOURCE", help="name of the source: a file of dags/config/sources/")
    parser.add_argument("start", metavar="FROM", help="first day, YYYY-MM-DD (UTC)")
    parser.add_argument("end", metavar="TO", help="day after the last, YYYY-MM-DD (UTC)")


def run(args: argparse.Namespace) -> int:
    """Print one line per table, and one per broken day.

    Raises:
        DefinitionError: a pattern or model of the source cannot be read; all others were looked at.
    """
    from jobs.quality import Audit, warm_up
    from jobs.steps.common import raise_together

    days = Days.parse(args.start, args.end)
    home = Home.from_env()
    warm_up()
    audit = Audit(home)
    broken = 0
    unread: list[tuple[str, BaseException]] = []
    for outcome in _outcomes(audit, args.source, days, unread):
        broken += len(outcome.broken)
        state = "BROKEN" if outcome.broken else "ok" if outcome.days else "nothing published"
        print(f"{outcome.what}: {state}, {counted(len(outcome.days), 'day')}")
        for day, why in sorted(outcome.broken.items()):
            print(f"  {day}: {why}")
    print(f"Data Docs: {audit.build_docs()}")
    raise_together(unread, "all others were looked at")
    return 1 if broken else 0


def _outcomes(
    audit: Audit, source_name: str, days: Days, unread: list[tuple[str, BaseException]]
) -> Iterator[Outcome]:
    """All results of a source; a JVM starts only if there are published matches to look at.

    Definitions that cannot be read, and so not be looked at, are added to ``unread``.
    """
    from jobs.catalog import load_patterns
    from jobs.model_catalog import load_models
    from jobs.quality import published
    from jobs.steps.common import the_source

    home = audit.home
    _, sources = the_source(home, source_name)
    compiled, bad_patterns = load_patterns(home, sources)
    loaded, bad_models = load_models(home, sources)
    for kind, bad in (("pattern", bad_patterns), ("model", bad_models)):
        unread += [(f"{kind}/{b.name}", b.error) for b in bad if b.source in (source_name, None)]
    patterns = [c for c in compiled if c.definition.source == source_name]
    models = [m for m in loaded if m.definition.source == source_name]
    yield published.accounting(audit, source_name, days)
    if any(published.published_days(home, c.definition.name, days) for c in patterns):
        from jobs.lake.session import spark_session

        yield from published.matches(audit, spark_session(home, "validate"), source_name, patterns, days)
    yield from published.models(audit, models, days)
