"""The page of a match: its events on the curves of their series, where each came from, and why it is a match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.catalog.patterns import CompiledPattern
from chainlake.cep.compiling.names import attributes_of
from chainlake.cep.compiling.tail import UNBOUNDED
from chainlake.cep.language import ast
from chainlake.errors import ChainlakeError
from chainlake.markup import Html, joined, link, section, table, tag
from chainlake.report.drawing import charts
from chainlake.report.drawing.labels import Mark
from chainlake.report.drawing.road import PLACE
from chainlake.report.page import chart, document
from chainlake.report.reading import Event, Match, SourceReader
from chainlake.report.reasons import Reason, reasons_of
from chainlake.report.showing import MISSING, Clock, counted, number, plain, unit_of, with_unit

#: The largest numbers of panels of a match, and of series in a panel.
PANELS, SERIES = 3, 6
#: How many events are listed one by one.
_LISTED = 60
#: The largest number of events that a check of the conditions reads.
CHECKED = 100_000
_LEAST_US = 60_000_000


@dataclass(frozen=True)
class Around:
    """A match with the events of its series before, during and after it.

    Args:
        match: the match.
        span: the time range shown.
        events: the series' events in that time.
        panels: the attributes that are drawn.
    """

    match: Match
    span: charts.Span
    events: pa.Table
    panels: tuple[str, ...]


def around(lake: SourceReader, compiled: CompiledPattern, match: Match) -> Around:
    """A match with the events around it."""
    source = lake.source
    span = charts.Span(*_shown(compiled, match), Clock.of(source))
    numeric = [one.name for one in source.attributes if one.type in ("double", "long")]
    events = lake.events((span.lo_us, span.hi_us), numeric, match.keys[:SERIES])
    return Around(match, span, events, _panels(compiled, numeric, events, source.key))


def _shown(compiled: CompiledPattern, match: Match) -> tuple[int, int]:
    window = compiled.pattern.window_us
    length = max(match.end_us - match.start_us, _LEAST_US)
    pad = max(length, min(window, 6 * length) if window < UNBOUNDED else 0)
    return match.start_us - pad, match.end_us + pad


def _panels(compiled: CompiledPattern, numeric: Sequence[str], events: pa.Table, key: str) -> tuple[str, ...]:
    """The attributes to draw: those in conditions first, then others that the pattern keeps; constant ones only if
    there are no others."""
    pattern = compiled.pattern
    kept = [name for name in dict.fromkeys(a for one in pattern.names for a in one.attributes) if name in numeric]
    weight: Counter[str] = Counter()
    for literal in (x for branch in pattern.branches for clause in branch.every_clause for x in clause.literals):
        # The attribute on the left of a comparison is usually the one that it is about, so it counts twice.
        left = attributes_of(literal.left) if isinstance(literal, ast.Compare) else ()
        weight.update(attr for _, attr in (*attributes_of(literal), *left))
    asked = sorted((name for name in numeric if weight[name]), key=lambda name: -weight[name])
    wanted = list(dict.fromkeys([*asked, *kept])) or list(numeric)
    moving = [name for name in wanted if not _still(events, name, key)]
    return tuple((moving or wanted)[:PANELS])


def _still(events: pa.Table, name: str, key: str) -> bool:
    """Whether an attribute has only one value in each series, like the place of a detector."""
    if not len(events):
        return name == PLACE
    ends = events.group_by(key).aggregate([(name, "min"), (name, "max")])
    return bool(pc.all(pc.equal(ends[f"{name}_min"], ends[f"{name}_max"])).as_py())


def panel(lake: SourceReader, compiled: CompiledPattern, found: Around, attribute: str, height: int) -> charts.Spec:
    """The chart of one attribute of a match's series, with the match's events on it and the window shaded."""
    match, source = found.match, lake.source
    lines: dict[str, list[tuple[int, float | None]]] = {one: [] for one in match.keys[:SERIES]}
    columns = [found.events[source.key], found.events["ts"].cast(pa.int64()), found.events[attribute]]
    for key, us, value in zip(*(column.to_pylist() for column in columns), strict=True):
        lines[key].append((us, plain(value)))
    marks, named = [], set()
    for one in match.events:
        value = f"{with_unit(source, attribute)} {number(one.row.get(attribute))}"
        said = f"{one.key}, {found.span.clock.text(one.us)}, {value}"
        marks.append(Mark(one.us, plain(one.row.get(attribute)), one.name, said, one.name not in named))
        named.add(one.name)
    window = compiled.pattern.window_us
    shade = (match.start_us, match.start_us + window if window < UNBOUNDED else match.end_us)
    return charts.curve(
        found.span, lines, marks, shade, title=with_unit(source, attribute), height=height, key=source.key
    )


def figure(lake: SourceReader, compiled: CompiledPattern, found: Around, attribute: str, height: int) -> Html:
    """A panel, with a text for readers who cannot see it."""
    match, clock = found.match, found.span.clock
    bound = ", ".join(
        f"{one.name} {number(one.row.get(attribute))} at {clock.local(one.us):%H:%M:%S %Z}" for one in match.events[:8]
    )
    unit = unit_of(lake.source, attribute)
    said = f"{attribute}{f' in {unit}' if unit else ''} of {', '.join(match.keys[:SERIES])} over time; {bound}."
    return chart(panel(lake, compiled, found, attribute, height), Html(""), said, tall=height + 50)


def page(lake: SourceReader, compiled: CompiledPattern, found: Around, origin: Html) -> str:
    """The page of a match.

    Args:
        lake: the tables.
        compiled: its pattern.
        found: the match.
        origin: what the rows of its day were computed from, as HTML.
    """
    name, match, source, clock = compiled.pattern.name, found.match, lake.source, found.span.clock
    drawn = [figure(lake, compiled, found, one, 190) for one in found.panels]
    window = compiled.pattern.window_us
    shaded = (
        "The shaded area is the window, counted from the first event."
        if window < UNBOUNDED
        else "The shaded area is the match."
    )
    more = len(match.keys) - SERIES
    if more > 0:
        shaded += f" {counted(more, 'more series is', 'more series are')} not drawn."
    body = [
        tag(
            "p",
            "Match of ",
            link(f"../../patterns/{name}.html", name),
            f" ({match.why}): {compiled.pattern.description}",
            class_="lead",
        ),
        _facts(match, clock, source),
        section("On the curve", *drawn, about=shaded),
        section("Its events", _events(lake, match), about=_about_units(lake)),
        section(
            "Why it is a match",
            _why(lake, compiled, match),
            about="Each condition of the pattern, as it is written and with the values of these events.",
        ),
        section("Where it comes from", origin, _id(match)),
    ]
    title = f"{name}, {clock.short(match.end_us)}"
    crumbs = [("Report", "index.html"), (f"pattern {name}", f"patterns/{name}.html"), ("match " + match.id[:8], None)]
    return document(title, body, depth=2, crumbs=crumbs)


def _facts(match: Match, clock: Clock, source: Any) -> Html:
    facts = [
        (match.series, source.key),
        (f"{len(match.events):,}", "events"),
        (_length(match.end_us - match.start_us), "from first to last event"),
    ]
    facts += [(number(value), name) for name, value in match.numbers.items() if isinstance(value, int | float)][:4]
    cards = [tag("li", tag("b", value), tag("span", said)) for value, said in facts]
    rows = [
        ("first event", clock.html(match.start_us)),
        ("last event", clock.html(match.end_us)),
        ("decided", clock.html(match.decided_us)),
    ]
    return joined([tag("ul", *cards, class_="facts"), table(("", "time"), rows, f"Times in {clock.zone}")])


def _length(us: int) -> str:
    seconds = us / 1e6
    if seconds >= 7200:
        return f"{seconds / 3600:.4g} h"
    return f"{seconds / 60:.4g} min" if seconds >= 120 else f"{seconds:.6g} s"


def _about_units(lake: SourceReader) -> str:
    stated = [one.name for one in lake.source.attributes if unit_of(lake.source, one.name)]
    if stated:
        return (
            f"Units as the source {lake.source.name} states them; an attribute without one is a plain number or text."
        )
    return f"The source {lake.source.name} states no units."


def _events(lake: SourceReader, match: Match) -> Html:
    source, clock = lake.source, Clock.of(lake.source)
    shown = [one.name for one in source.attributes if any(one.name in event.row for event in match.events)]
    header = ("name", "time", source.key, *(with_unit(source, one) for one in shown), "file", "line")
    rows = [
        (
            tag("b", one.name),
            clock.html(one.us),
            one.key,
            *(number(one.row.get(name)) for name in shown),
            _file(one),
            number(one.line),
        )
        for one in match.events[:_LISTED]
    ]
    texts = [one.name for one in source.attributes if one.type == "string"]
    right = [3 + at for at, name in enumerate(shown) if name not in texts] + [len(header) - 1]
    more = len(match.events) - len(rows)
    rest = [tag("p", f"And {more:,} more.", class_="small")] if more > 0 else []
    return joined([table(header, rows, "Events that the match binds, in time order", right), *rest])


def _file(event: Event) -> Html:
    if event.file is None:
        return Html(f"<span class=none>{MISSING}</span>")
    return tag("code", event.file, class_="file")


def _why(lake: SourceReader, compiled: CompiledPattern, match: Match) -> Html:
    pattern = compiled.pattern
    if pattern.front.counted:
        kept = f"The table keeps only the number of events of {', '.join(pattern.front.counted)}"
        return tag("p", f"{kept}, so the conditions cannot be checked again.", class_="none")
    try:
        events = lake.needed(compiled, (match.start_us, match.decided_us + 1))
        if len(events) > CHECKED:
            return tag(
                "p",
                f"Its search reads {len(events):,} events, more than the {CHECKED:,} that a report searches.",
                class_="none",
            )
        bound = {name: [one.event_id for one in listed] for name, listed in match.bound().items()}
        reasons = reasons_of(pattern, events, bound)
    except ChainlakeError as error:
        return tag("p", f"The conditions could not be checked again: {error.summary}", class_="warn")
    if not reasons:
        return tag(
            "p",
            "Some of its events have left the events table since, so the conditions cannot be checked again.",
            class_="none",
        )
    return table(("condition", "with values", "holds"), [_reason(one) for one in reasons], "Conditions of the match")


def _reason(one: Reason) -> tuple[object, ...]:
    verdict = {True: "yes", False: "no", None: "none was found"}[one.holds]
    return tag("code", one.condition), tag("code", one.values) if one.values else MISSING, verdict


def _id(match: Match) -> Html:
    return tag("p", "Match id ", tag("code", match.id), class_="small")
