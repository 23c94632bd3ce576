"""The page of a pattern: its meaning, its counts, its best or latest matches, and near misses.

A section is a function that returns HTML, called by `_page`. A page is made again only when `report.kept.digest_of`
changes, so a section must not show anything that depends on today's date.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from chainlake.catalog.patterns import CompiledPattern
from chainlake.cep.explain.parts import bounds, ranking
from chainlake.cep.explain.report import chosen_orders, explain
from chainlake.days import day_of, day_start_us, us_of
from chainlake.definitions.source import Source
from chainlake.lake.delta import tables
from chainlake.lake.records.defined.registered import registered_table
from chainlake.lake.records.staleness import Judged
from chainlake.markup import Html, details, link, section, table, tag
from chainlake.report import matches
from chainlake.report.drawing import charts
from chainlake.report.drawing.road import CELLS, MATCHES, PLACE, Change, is_road, road_map
from chainlake.report.drawing.states import hatched, shown, which_are, words_of
from chainlake.report.page import chart, document
from chainlake.report.reading import Match, SourceReader, chosen, latest_ends, whole
from chainlake.report.reasons import near_misses_of
from chainlake.report.showing import Clock, comment, counted, with_code, with_unit

#: How many days the table behind a chart lists.
LISTED = 60
#: The largest number of days of which a road is drawn.
MAPS = 6


@dataclass(frozen=True)
class Subject:
    """A pattern with what the lake knows about it.

    Args:
        lake: the tables.
        compiled: the pattern.
        judged: its days.
        derived: the days of its episodes or its ranking.
        changes: changes of models on the same source.
    """

    lake: SourceReader
    compiled: CompiledPattern
    judged: Judged
    derived: Sequence[Judged] = ()
    changes: Sequence[Change] = ()

    @property
    def source(self) -> Source:
        """The source of the pattern's events."""
        return self.lake.source


def pages(of: Subject) -> dict[str, str]:
    """The page of a pattern and those of the matches that it draws, by their paths in the report."""
    lake, name = of.lake, of.compiled.pattern.name
    drawn = [matches.around(lake, of.compiled, one) for one in chosen(lake, of.compiled, of.judged, of.derived)]
    found = {
        f"matches/{name}/{one.match.id}.html": matches.page(lake, of.compiled, one, _origin(of, one.match))
        for one in drawn
    }
    found[f"patterns/{name}.html"] = _page(of, drawn)
    return found


def _page(of: Subject, drawn: Sequence[matches.Around]) -> str:
    pattern = of.compiled.pattern
    body = [
        tag("p", with_code(pattern.description or "No description."), class_="lead"),
        _facts(of),
        _failures(of),
        _meaning(of),
        _counts(of),
        _cards(of, drawn),
        *_road(of, drawn),
        near_misses_of(of.lake, of.compiled, of.judged),
    ]
    crumbs = [("Report", "index.html"), (f"pattern {pattern.name}", None)]
    return document(f"Pattern {pattern.name}", body, depth=1, crumbs=crumbs)


def _facts(of: Subject) -> Html:
    rows = of.judged.rows(np.arange(len(of.judged.numbers)))
    done = of.judged.state == "done"
    days = [of.judged.day(int(at)) for at in np.flatnonzero(done)[[0, -1]]] if done.any() else []
    facts = [
        (f"{int(rows.sum()):,}", "matches published"),
        (f"{int(done.sum()):,} of {len(done):,}", "days done"),
        (f"{days[0]} to {days[-1]}" if days else "none", "first and last day done (UTC)"),
        (of.source.name, "source"),
    ]
    return tag(
        "ul",
        *(
            tag("li", tag("b", value, class_="long" if len(value) > 12 else None), tag("span", said))
            for value, said in facts
        ),
        class_="facts",
    )


def _failures(of: Subject) -> Html:
    """Days that are not as they should be, with the reasons."""
    rows = []
    for judged in (of.judged, *of.derived):
        for at in np.flatnonzero(which_are(judged.state, "open", "bad")).tolist():
            rows.append((judged.name, judged.day(at), shown(judged.state_at(at)), judged.why(at)))
    if not rows:
        return Html("")
    rows.sort(key=lambda row: row[1], reverse=True)
    more = len(rows) - LISTED
    rest = (
        [tag("p", f"And {more:,} more: chainlake status --definition {of.judged.name}", class_="small")]
        if more > 0
        else []
    )
    return section(
        "Days that need a look",
        table(("definition", "day (UTC)", "state", "why"), rows[:LISTED], "Days that are not done, latest first"),
        *rest,
    )


def _meaning(of: Subject) -> Html:
    pattern = of.compiled.pattern
    text = pattern.text.text
    said = [tag("p", with_code(one)) for one in comment(text)]
    # How the best are found is said with the rest of the search, which is folded.
    kept = itertools.takewhile(lambda line: not line.startswith("strategy"), ranking(pattern))
    rows = list(_terms([*bounds(pattern), *kept]))
    whole_text = "\n".join(explain(pattern, chosen_orders(pattern)))
    return section(
        "What it means",
        *said,
        tag("pre", text.strip(), tabindex="0", aria_label="Text of the pattern"),
        table(("", "in words"), rows, "How far it reaches, which matches it keeps, and when they are decided"),
        details("How it is searched", tag("pre", whole_text, tabindex="0")),
        name="meaning",
    )


def _terms(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Lines of an explanation as terms with their texts; a line without a term continues the one before."""
    term = ""
    for line in lines:
        head, rest = line[:10].strip(), line[10:].strip()
        yield (head if head != term else "", rest)
        term = head or term


def _counts(of: Subject) -> Html:
    judged = of.judged
    rows = judged.rows(np.arange(len(judged.numbers))).tolist()
    numbers = judged.numbers.tolist()
    values = [(day_of(one), rows[at]) for at, one in enumerate(numbers) if rows[at] or judged.state[at] == "done"]
    if not values:
        return section("Matches per day", tag("p", "No day is done yet.", class_="none"))
    listed = [
        (
            day_of(numbers[at]),
            f"{rows[at]:,}",
            _state(judged, at),
        )
        for at in range(len(numbers) - 1, max(-1, len(numbers) - 1 - LISTED), -1)
    ]
    behind = details(
        "The same as a table",
        table(("day (UTC)", "matches", "state"), listed, f"The last {len(listed):,} days", right=[1]),
    )
    most = max(count for _, count in values)
    first, *others = (day for day, count in values if count == most)
    also = f" and {counted(len(others), 'other day')}" if others else ""
    undone = len(values) - int((judged.state == "done").sum())
    left = f", {undone:,} of them not done" if undone else ""
    peak = f"; most on {first}{also}: {most:,}" if most else "; none has one"
    said = f"Matches of {counted(len(values), 'day')}{left}{peak}."
    return section("Matches per day", chart(charts.bars(values, title="matches"), said, said, behind, tall=190))


def _state(judged: Judged, at: int) -> Html:
    state, lacks = judged.state_at(at), judged.lacks(at)
    return hatched(f"{words_of(state)}, {lacks}") if lacks and state == "done" else shown(state)


def _cards(of: Subject, drawn: Sequence[matches.Around]) -> Html:
    if not drawn:
        return section("Matches", tag("p", "There is none yet.", class_="none"))
    pattern = of.compiled.pattern
    best = of.compiled.ranking is not None or (of.compiled.episodes is not None and _severe(of))
    cards = []
    for found in drawn:
        one = found.match
        picture = [matches.figure(of.lake, of.compiled, found, found.panels[0], 120)] if found.panels else []
        where = link(
            f"../matches/{pattern.name}/{one.id}.html",
            f"{one.series}, {found.span.clock.short(one.end_us)}",
        )
        cards.append(tag("article", tag("h3", where), tag("p", one.why, class_="small"), *picture, class_="card"))
    title = "Its best matches" if best else "Its latest matches"
    clock = drawn[0].span.clock
    below = "" if clock.zone == "UTC" else f" Below each are times in {clock.zone}, and under them those in UTC."
    about = (
        "Each opens with all its events, the files they came from, and why each condition held. "
        f"The shaded area is the window.{below}"
    )
    return section(title, tag("div", *cards, class_="cards"), about=about, name="matches")


def _severe(of: Subject) -> bool:
    episodes = of.compiled.pattern.extras.episodes
    return episodes is not None and bool(episodes.severe)


def _road(of: Subject, drawn: Sequence[matches.Around]) -> list[Html]:
    """If the source is a road, a map of each of the latest local days with matches, and of those of the matches drawn;
    all but the last one are folded."""
    if not is_road(of.source) or not drawn:
        return []
    newest = max(drawn, key=lambda one: one.match.end_us)
    if not newest.panels:
        return []
    clock = Clock.of(of.source)
    ends = [one.match.end_us for one in drawn] + latest_ends(of.lake, of.compiled.pattern.name, of.judged, MAPS)
    days = sorted({clock.day(us) for us in ends}, reverse=True)[:MAPS]
    maps = [_map(of, day, newest.panels[0], CELLS // len(days)) for day in days]
    folded = [details(said, figure) for said, figure in maps[1:]]
    about = "The latest day with matches; other days with matches open below it." if folded else None
    return [section("On the road", maps[0][1], *folded, about=about, name="road")]


def _map(of: Subject, day: date, shown: str, cells: int) -> tuple[str, Html]:
    """The day with its matches in words, and its map."""
    clock = Clock.of(of.source)
    lo, hi = clock.span_of(day)
    every = _of_day(of, (lo, hi))
    changes = [one for one in of.changes if lo <= one.us < hi]
    events = of.lake.events((lo, hi), [PLACE, shown])
    span = charts.Span(lo, hi, clock)
    spec = road_map(of.source, span, events, shown, matches=every[:MATCHES], changes=changes, most=cells)
    more = f" The first {MATCHES:,} of {len(every):,} are drawn." if len(every) > MATCHES else ""
    dashed = f" and {counted(len(changes), 'model change')} (dashed)" if changes else ""
    many = counted(len(every), "match", "matches")
    lines = f"{many} of {of.compiled.pattern.name} (lines with dots)"
    said = f"{with_unit(of.source, shown)} along the road on {day}, with {lines}{dashed}.{more}"
    return f"{day}: {many}", chart(spec, said, said, tall=400)


def _of_day(of: Subject, span: tuple[int, int]) -> list[Match]:
    """The matches whose last event lies in a time range; only those that a map draws have their events."""
    table_name = registered_table(of.lake.home, of.compiled.pattern.name)
    late = of.compiled.pattern.late_us
    columns = ["match_id", "decision_ts", "start_ts", "end_ts"]
    rows = tables.arrow(
        of.lake.home, "matches", table_name, columns=columns, filters=tables.decided_in(span[0], span[1] + late)
    )
    inside = [row for row in rows.to_pylist() if span[0] <= us_of(row["end_ts"]) < span[1]]
    inside.sort(key=lambda row: (row["end_ts"], row["match_id"]))
    picked = [
        Match(row["match_id"], us_of(row["start_ts"]), us_of(row["end_ts"]), us_of(row["decision_ts"]))
        for row in inside
    ]
    return whole(of.lake, table_name, picked[:MATCHES]) + picked[MATCHES:]


def _origin(of: Subject, match: Match) -> Html:
    """What the rows of a match's day were computed from."""
    at = np.flatnonzero(of.judged.numbers == day_start_us(match.day) // 86_400_000_000)
    if not len(at):
        return tag("p", "ops.intervals has no record of its day.", class_="none")
    place = int(at[0])
    names = ("table_name", "published_version", "definition_hash", "engine_version", "input_fingerprint")
    recorded = {name: of.judged.recorded(name)[place] for name in names}
    rows = [("day (UTC)", match.day), ("state of the day", words_of(of.judged.state_at(place)))]
    rows += [(name.replace("_", " "), tag("code", value)) for name, value in recorded.items()]
    return table(("", "value"), rows, "What the rows of this day were computed from, according to ops.intervals")
