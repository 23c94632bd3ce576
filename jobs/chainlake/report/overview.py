"""The first page: every definition and day at a glance, what failed, what costs and finds the most, and an index."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from chainlake.days import day_number, day_of
from chainlake.lake.records import ops
from chainlake.lake.records.staleness import Judged
from chainlake.markup import Html, joined, link, section, table, tag
from chainlake.paths import Home
from chainlake.report.drawing.states import LEGEND, PROVISIONAL, SHOWN, for_grid, hatched, shown, which_are, words_of
from chainlake.report.page import data_block, document
from chainlake.report.showing import counted, dot

#: How many reasons the grid itself shows, and how many rows the lists have.
_WHYS, _LISTED = 400, 30
#: Gaps in the days that are longer than this are left out of the grid.
_GAP = 31
#: How many days the lists of costs and counts look back.
RECENT = 30


@dataclass(frozen=True)
class Entry:
    """A definition in the index.

    Args:
        judged: its days.
        page: path of its page; None if it has none.
        about: its description.
    """

    judged: Judged
    page: str | None
    about: str


def page(home: Home, entries: Sequence[Entry], notes: Sequence[str], docs: str | None) -> str:
    """The first page.

    Args:
        home: the installation.
        entries: all definitions.
        notes: lines about files and definitions that need attention, and about pages that could not be made.
        docs: address of the Data Docs; None if there are none.
    """
    made = datetime.now(UTC)
    body = [
        _facts(entries, made),
        _notes(notes),
        _grid(entries),
        _failed(entries),
        _recent(home, entries),
        _index(entries),
        _elsewhere(home, docs),
    ]
    return document("What this lake found", body, depth=0, crumbs=[("Report", None)])


def _facts(entries: Sequence[Entry], made: datetime) -> Html:
    states = np.concatenate([one.judged.state for one in entries]) if entries else np.zeros(0, str)
    bad = int(which_are(states, "bad").sum())
    open_ = int(which_are(states, "open").sum())
    numbers = [one.judged.numbers for one in entries if len(one.judged.numbers)]
    span = (
        f"{day_of(int(min(n[0] for n in numbers)))} to {day_of(int(max(n[-1] for n in numbers)))}"
        if numbers
        else "none"
    )
    facts = [
        (f"{len(entries):,}", "definitions"), (span, "days (UTC)"),
        (f"{int((states == 'done').sum()):,}", "days done, of all definitions"),
        (f"{open_:,}", "days to do or waiting, of all definitions"),
        (f"{bad:,}", "days failed or suspect, of all definitions"),
        (f"{made:%Y-%m-%d %H:%M:%S}", "made (UTC)"),
    ]  # fmt: skip
    return tag(
        "ul",
        *(
            tag("li", tag("b", value, class_="long" if len(value) > 12 else None), tag("span", said))
            for value, said in facts
        ),
        class_="facts",
    )


def _notes(notes: Sequence[str]) -> Html:
    if not notes:
        return Html("")
    more = len(notes) - _LISTED
    rest = [tag("p", f"And {more:,} more: chainlake status")] if more > 0 else []
    return section("What needs attention", *(tag("p", one, class_="warn") for one in notes[:_LISTED]), *rest)


# ---- the grid


def _grid(entries: Sequence[Entry]) -> Html:
    with_days = [one for one in entries if len(one.judged.numbers)]
    if not with_days:
        return section("Day by day", tag("p", "No day has been ingested yet.", class_="none"))
    spans = _spans(np.unique(np.concatenate([one.judged.numbers for one in with_days])))
    days = sum(many for _, many in spans)
    counter = itertools.count()
    rows = [_row(one, spans, counter) for one in with_days]
    most = max((int(one.judged.rows(np.arange(len(one.judged.numbers))).max()) for one in with_days), default=0)
    data = {
        "spans": [[str(day_of(first)), many] for first, many in spans],
        "days": days,
        "most": most,
        "states": for_grid(),
        "rows": rows,
    }
    legend = [tag("li", dot(colour, said)) for colour, said in LEGEND]
    legend.insert(1, tag("li", hatched()))
    heat = [tag("li", dot("empty", "none")), tag("li", dot("few", "one")), tag("li", dot("many", f"{most:,}"))]
    buttons = [tag("button", said, type="button", data_layer=name, aria_pressed="true" if name == "status" else "false")
               for name, said in (("status", "Status"), ("matches", "Rows published"))]  # fmt: skip
    tools = tag("div", *buttons, *_years(spans), class_="tools", role="group", aria_label="What the grid shows")
    said = (
        f"Grid of {counted(len(rows), 'definition')} by {counted(days, 'day')}. "
        "Arrow keys move from day to day, Enter opens the page of a definition."
    )
    canvas = tag(
        "canvas",
        "The same is listed below as a table.",
        tabindex="0",
        role="img",
        aria_label=said,
        aria_describedby="said",
    )
    return section(
        "Day by day",
        tools,
        tag("ul", *legend, class_="legend", data_legend="status"),
        Html(tag("ul", *heat, class_="legend", data_legend="matches").replace("<ul", "<ul hidden", 1)),
        tag("div", canvas, class_="gridbox", id="grid"),
        tag("p", "Point at a day, or move with the arrow keys.", class_="said", id="said", aria_live="polite"),
        data_block("grid-data", data),
        about="Each row is a definition, each column a UTC day; where several days share a column, the one that most "
        "needs a look is shown. Click a row to open its page.",
        name="days",
    )


def _spans(numbers: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of days, each as first day and length; only gaps longer than a month separate them."""
    cuts = np.flatnonzero(np.diff(numbers) > _GAP) + 1
    parts = np.split(numbers, cuts)
    return [(int(part[0]), int(part[-1] - part[0]) + 1) for part in parts]


def _row(entry: Entry, spans: Sequence[tuple[int, int]], counter: Iterator[int]) -> dict[str, Any]:
    judged = entry.judged
    every_day = np.concatenate([np.arange(first, first + many) for first, many in spans])
    codes, counts = np.full(len(every_day), -1, np.int64), np.full(len(every_day), -1, np.int64)
    at = np.searchsorted(every_day, judged.numbers)
    known: dict[str, int] = {name: number for number, name in enumerate(SHOWN)}
    names, places = np.unique(judged.state, return_inverse=True)
    of_states = np.array([known[str(name)] for name in names], np.int64)[places]
    provisional = (judged.state == "done") & judged.provisional
    codes[at] = np.where(provisional, len(SHOWN), of_states)
    every = judged.rows(np.arange(len(at)))
    counts[at] = np.where((judged.state == "done") | (every > 0), every, -1)
    whys = {}
    explained = (which_are(judged.state, "open", "bad") & (judged.state != "waiting")) | provisional
    for place in np.flatnonzero(explained).tolist():
        if next(counter) >= _WHYS:
            break
        whys[str(int(at[place]))] = judged.why(place)[:160]
    row: dict[str, Any] = {"name": judged.name, "states": packed(codes), "counts": packed(counts)}
    if entry.page is not None:
        row["page"] = entry.page
    return row | ({"why": whys} if whys else {})


def packed(values: np.ndarray) -> str:
    """Whole numbers in the form that ``report.js`` unpacks: runs as ``VALUExTIMES``, with ``-`` for no day."""
    if not len(values):
        return ""
    starts = np.flatnonzero(np.diff(values, prepend=values[0] - 1))
    lengths = np.diff(np.append(starts, len(values)))
    texts = ("-" if value < 0 else str(value) for value in values[starts].tolist())
    return ",".join(
        text if times == 1 else f"{text}x{times}" for text, times in zip(texts, lengths.tolist(), strict=True)
    )


def _years(spans: Sequence[tuple[int, int]]) -> list[Html]:
    """A menu to choose days, if there are many."""
    begin, end = day_of(spans[0][0]), day_of(spans[-1][0] + spans[-1][1] - 1)
    if (end - begin).days <= 120:
        return []
    held = {day_of(first + at).year for first, many in spans for at in (*range(0, many, 300), many - 1)}
    options = [Html('<option value="..">all days</option>')]
    options.append(tag("option", "the last 90 days", value=f"{end - timedelta(days=89)}.."))
    options += [tag("option", year, value=f"{year}-01-01..{year + 1}-01-01") for year in sorted(held, reverse=True)]
    return [tag("label", "Days ", tag("select", *options, id="years"))]


# ---- lists


def _failed(entries: Sequence[Entry]) -> Html:
    rows: list[tuple[date, Entry, int]] = []
    for one in entries:
        found = np.flatnonzero(which_are(one.judged.state, "bad"))
        rows += [(one.judged.day(at), one, at) for at in found[-_LISTED:].tolist()]
    if not rows:
        return section("Failed", tag("p", "No day has failed.", class_="none"))
    rows.sort(key=lambda row: (row[0], row[1].judged.name), reverse=True)
    listed = [
        (
            _named(one),
            day,
            shown(one.judged.state_at(at)),
            one.judged.why(at),
        )
        for day, one, at in rows[:_LISTED]
    ]
    return section(
        "Failed", table(("definition", "day (UTC)", "state", "reason"), listed, "Latest first"), name="failed"
    )


def _named(entry: Entry) -> Html:
    name = entry.judged.name
    return Html(tag("span", name)) if entry.page is None else link(entry.page, name)


def _recent(home: Home, entries: Sequence[Entry]) -> Html:
    """The definitions that cost most, and those that published most rows, on their last days."""
    ends = [int(one.judged.numbers[-1]) for one in entries if len(one.judged.numbers)]
    if not ends:
        return Html("")
    since = {one.judged.name: int(one.judged.numbers[-1]) - RECENT + 1 for one in entries if len(one.judged.numbers)}
    loud = []
    for one in entries:
        recent = np.flatnonzero(one.judged.numbers >= since.get(one.judged.name, 0))
        total = int(one.judged.rows(recent).sum()) if len(recent) else 0
        if total:
            loud.append((total, len(recent), one))
    loud.sort(key=lambda row: (-row[0], row[2].judged.name))
    costs = _costs(home, since)
    costly = sorted(
        ((costs[one.judged.name], one) for one in entries if costs.get(one.judged.name)),
        key=lambda row: (-row[0], row[1].judged.name),
    )
    most, loudest = max([cost for cost, _ in costly], default=1), max([total for total, _, _ in loud], default=1)
    tested = [(_named(one), f"{cost:,}", _bar(cost / most)) for cost, one in costly[:10]]
    published = [(_named(one), f"{n:,}", f"{n / many:,.1f}", _bar(n / loudest)) for n, many, one in loud[:10]]
    costs_said = f"Conditions tested on its last {RECENT} days, as ops.plans has them"
    loud_said = f"Rows published for its last {RECENT} days"
    return tag(
        "div",
        section(
            "Costliest",
            table(("definition", "evaluations", ""), tested, costs_said, right=[1]),
            name="costliest",
        ),
        section(
            "Loudest",
            table(("definition", "rows", "a day", ""), published, loud_said, right=[1, 2]),
            name="loudest",
        ),
        class_="pair",
    )


def _bar(share: float) -> Html:
    return tag("span", class_="bar", style=f"width:calc({max(share, 0.004):.4f} * var(--bar))")


def _costs(home: Home, since: Mapping[str, int]) -> dict[str, int]:
    """Evaluations of each pattern on its last days."""
    if not since:
        return {}
    rows = ops.current_table(
        home, "plans", columns=["definition", "day", "evaluations", "evaluations_neg"],
        filters=[("day", ">=", day_of(min(since.values())))],
    )  # fmt: skip
    found: dict[str, int] = defaultdict(int)
    columns = [rows[name].to_pylist() for name in ("definition", "day", "evaluations", "evaluations_neg")]
    for name, day, tested, forbidden in zip(*columns, strict=True):
        if name in since and day_number(day) >= since[name]:
            found[name] += (tested or 0) + (forbidden or 0)
    return found


def _index(entries: Sequence[Entry]) -> Html:
    rows = []
    for one in entries:
        judged = one.judged
        states = {str(name): int(many) for name, many in zip(*np.unique(judged.state, return_counts=True), strict=True)}
        counts = [
            tag("span", shown(name, f"{states[name]:,} {words_of(name)}"), class_="state")
            for name in SHOWN
            if name in states
        ]
        provisional = int(((judged.state == "done") & judged.provisional).sum())
        if provisional:
            counts.insert(1, tag("span", hatched(f"{provisional:,} of them {PROVISIONAL}"), class_="state"))
        last = judged.day(len(judged.numbers) - 1) if len(judged.numbers) else "–"
        total = int(judged.rows(np.arange(len(judged.numbers))).sum()) if len(judged.numbers) else 0
        cells = (_named(one), one.about, joined(counts, " "), last, f"{total:,}")
        rows.append(
            tag(
                "tr",
                *(tag("td", cell, class_={3: "day", 4: "n"}.get(at)) for at, cell in enumerate(cells)),
                data_name=f"{judged.name} {one.about}".lower(),
            )
        )
    head = tag(
        "tr",
        *(
            tag("th", name, scope="col", class_="n" if at == 4 else None)
            for at, name in enumerate(("definition", "what it is", "days", "last day", "rows"))
        ),
    )
    inner = tag(
        "table", tag("caption", "Everything that has days in this lake"), tag("thead", head), tag("tbody", *rows)
    )
    field = tag("label", "Search by name or meaning ", Html('<input type="search" id="find" autocomplete="off">'))
    tools = tag(
        "div",
        field,
        tag("span", counted(len(rows), "definition"), id="found", aria_live="polite", class_="small"),
        class_="tools",
    )
    return section("All definitions", tools, tag("div", inner, class_="wide"), name="all")


def _elsewhere(home: Home, docs: str | None) -> Html:
    audits = link(docs, "Data Docs: what the audits found") if docs else "Data Docs: no audit has run yet"
    return section(
        "Elsewhere",
        tag(
            "ul",
            tag("li", audits),
            tag("li", "Tables: ", tag("code", home.lake)),
            tag("li", "Questions in SQL: ", tag("code", 'chainlake sql "SELECT …"')),
        ),
    )
