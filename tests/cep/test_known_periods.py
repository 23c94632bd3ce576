"""A period of the calendar is a line of one table: what else speaks of periods asks it."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from chainlake.catalog.patterns import check_pattern
from chainlake.cep.language.formatter import format_query
from chainlake.cep.language.layout import format_text
from chainlake.cep.language.parsing.lexer import misspelt
from chainlake.cep.language.parsing.query import parse
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.library import match
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.ranking.days import owners, spans
from chainlake.cep.ranking.kinds import PERIODS, Calendar
from chainlake.cep.ranking.periods import periods
from chainlake.cep.ranking.rule import Period
from chainlake.days import US_PER_DAY
from chainlake.errors import DefinitionError, InputError
from chainlake.paths import PROJECT, Home
from chainlake.starter.editors.grammar import grammar

QUERY = (
    "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 2 d\n"
    "RANK BY MAX(b.x - a.x)\nTOP 2 PER QUARTER IN 'America/New_York' DISTINCT ON a.x AT MOST 1"
)
ZONE = ZoneInfo("America/New_York")


@pytest.fixture
def with_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    """``QUARTER`` as somebody would add it: a line."""

    def begin(day: date) -> date:
        return day.replace(month=day.month - (day.month - 1) % 3, day=1)

    def after(day: date) -> date:
        return begin(day + timedelta(days=93))

    monkeypatch.setitem(PERIODS, "QUARTER", Calendar(92, begin, after))


def quarter(at: datetime) -> tuple[int, int]:
    local = at.astimezone(ZONE)
    return local.year, (local.month - 1) // 3


@pytest.mark.usefixtures("with_quarter")
def test_another_period_has_its_best_matches() -> None:
    rng = random.Random(3)
    begin = datetime(2023, 11, 1, tzinfo=UTC)
    events: list[dict[str, Any]] = [
        {"id": str(n), "type": rng.choice("AB"), "ts": begin + timedelta(hours=11 * n), "attrs": {"x": rng.random()}}
        for n in range(800)
    ]
    best: dict[tuple[int, int], list[tuple[float, str, str]]] = {}
    for one in events:
        for other in events:
            apart = other["ts"] - one["ts"]
            rise = other["attrs"]["x"] - one["attrs"]["x"]
            if (one["type"], other["type"]) == ("A", "B") and timedelta(0) < apart <= timedelta(days=2) and rise > 0:
                best.setdefault(quarter(other["ts"]), []).append((-rise, one["id"], other["id"]))
    wanted: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for period, found in best.items():
        kept: dict[str, str] = {}
        for _, a, b in sorted(found):
            kept.setdefault(a, b)
        wanted[period] = list(kept.items())[:2]
    rows: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for one in sorted(match(QUERY, events), key=lambda row: (row["scope_start"], row["rank"])):
        start, end = one["scope_start"], one["scope_end"]
        assert start.astimezone(ZONE).hour == 0
        assert quarter(start) == quarter(end - timedelta(microseconds=1)) != quarter(end)
        rows.setdefault(quarter(start), []).append((one["a"], one["b"]))
    assert len(rows) > 4 and rows == wanted


@pytest.mark.usefixtures("with_quarter")
def test_the_days_of_another_period_are_known() -> None:
    period = Period("quarter", zone="America/New_York")
    first, second, third = (int(datetime(2024, month, 1, tzinfo=ZONE).timestamp()) * 1_000_000 for month in (1, 4, 7))
    numbers = np.arange(first // US_PER_DAY, third // US_PER_DAY)
    lo, hi = spans(period, 0, numbers)
    held = {int(number): (int(a), int(b)) for number, a, b in zip(numbers, lo, hi, strict=True) if b > a}
    assert held == {first // US_PER_DAY: (first, second), second // US_PER_DAY: (second, third)}
    last = np.array([third // US_PER_DAY - 1])
    assert owners(period, 0, last).tolist() == [second // US_PER_DAY]


@pytest.mark.usefixtures("with_quarter")
def test_another_period_is_a_word_of_the_language() -> None:
    written = format_query(parse(SourceText(QUERY), 0))
    assert "PER QUARTER IN 'America/New_York'" in written
    assert format_query(parse(SourceText(written), 0)) == written
    assert "PER QUARTER IN" in format_text(QUERY.replace("QUARTER", "quarter"), 0)
    assert misspelt("quartr") == "QUARTER"
    patterns = grammar()["repository"]["query"]["patterns"]
    assert "|QUARTER|" in next(one["match"] for one in patterns if one["name"] == "keyword.control.sase")
    with pytest.raises(DefinitionError) as caught:
        compile_pattern(QUERY.replace("QUARTER", "YEAR"))
    assert "QUARTER" in str(caught.value.hint)


@pytest.mark.usefixtures("with_quarter")
@pytest.mark.parametrize(
    ("period", "allowed"),
    [("MONTH", True), ("QUARTER", False), ("ALL", False), ("BUCKET 31 d", True), ("BUCKET 32 d", False)],
)
def test_a_lake_keeps_no_longer_period_than_a_month_to_compare_its_matches(period: str, allowed: bool) -> None:
    home = Home.from_env()
    home = Home(home.root, home.lake, PROJECT / "dags" / "config", home.cache)
    query = (
        "PATTERN SEQ(Bar a, Bar b) WHERE a.ticker = b.ticker WITHIN 1 h "
        f"RANK BY MAX(b.close) TOP 2 PER {period} NON OVERLAPPING"
    )
    text = f"---\nsource: stock\n---\n{query}\n"
    if allowed:
        check_pattern(home, Path("long.sase"), text)
        return
    with pytest.raises(DefinitionError, match="its period is longer than 31 days") as caught:
        check_pattern(home, Path("long.sase"), text)
    assert "DAY or WEEK or MONTH," in str(caught.value.hint)


@pytest.mark.usefixtures("with_quarter")
@pytest.mark.parametrize("kind", ["day", "week", "month", "quarter"])
def test_at_the_ends_of_the_calendar_a_time_has_its_period_or_is_refused(kind: str) -> None:
    edges: list[Any] = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]
    refused = 0
    for edge, back in zip(edges, (1, -1), strict=True):
        for days in range(400):
            at = np.array([int((edge + timedelta(days=back * days)).timestamp())])
            try:
                _, starts, ends = periods(Period(kind, second=1), at, at)
            except InputError as error:
                assert "outside the years" in str(error)
                refused += 1
            else:
                assert starts[0] <= at[0] < ends[0]
    assert 0 < refused < 2 * 300
