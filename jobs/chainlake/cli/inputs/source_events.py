"""Patterns and the ingested events of their sources on the command line; no Spark."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from chainlake.cli.errors import NotIngested
from chainlake.days import Days, day_of_us
from chainlake.definitions.errors import UnknownSource
from chainlake.paths import Home

if TYPE_CHECKING:
    import pyarrow as pa

    from chainlake.cep.pattern import Pattern
    from chainlake.definitions.source import Source


def of_source(text: str, name: str, file: str | None) -> tuple[Pattern, Source | None]:
    """A pattern and its source, if its front matter names one; the pattern is checked against the source's schema.

    Args:
        text: text of the pattern.
        name: name of the pattern.
        file: its file, shown in errors.

    Raises:
        DefinitionError: the pattern is wrong, or there is no such source.
    """
    from chainlake.catalog.functions import codes_of
    from chainlake.cep.language.errors.placed import Referred
    from chainlake.cep.language.front_matter import read_front_matter
    from chainlake.cep.language.source_text import SourceText
    from chainlake.cep.pattern import compile_pattern
    from chainlake.definitions.source import find_source

    given = SourceText(text, file)
    front, _ = read_front_matter(given)
    codes = codes_of(Home.from_env(), text, file)
    if front.source is None:
        return compile_pattern(text, name=name, file=file, params=codes), None
    try:
        source = find_source(Home.from_env(), front.source)
    except UnknownSource as error:
        raise Referred.of(given, front.places["source"], error.what, error.hint, key="source") from None
    columns = source.pattern_columns()
    found = compile_pattern(text, name=name, file=file, columns=columns, params=codes, series=source.series)
    return found, source


def ingested(source: Source, pattern: Pattern, days: Days) -> pa.Table:
    """The events needed for the matches that are decided on ``days``, with their histories.

    Args:
        source: the pattern's source.
        pattern: the pattern.
        days: the days.

    Raises:
        UsageError: no event of the source has been ingested.
    """
    from chainlake.cep.events.history import add_histories
    from chainlake.lake.delta import tables

    home = Home.from_env()
    if not tables.exists(home, "events", source.name):
        raise NotIngested.source(source.name, days)
    lo, hi = pattern.source_range(*days.micros())
    histories = pattern.histories
    columns = {"event_id", "type", "ts", "seq", source.key, *(one.of for one in histories)}
    columns |= pattern.columns_needed - {one.name for one in histories}
    last = day_of_us(hi - 1) + timedelta(days=1)
    found = tables.arrow(
        home,
        "events",
        source.name,
        columns=sorted(columns),
        filters=[("event_date", ">=", day_of_us(lo)), ("event_date", "<", last)],
    )
    return add_histories(found, [source.key], histories) if histories else found
