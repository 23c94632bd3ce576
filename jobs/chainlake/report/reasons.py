"""Why a match is a match: each condition with the values of its events put in, and the engine's own verdict; and which
conditions ended what came near."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from chainlake.catalog.patterns import CompiledPattern
from chainlake.cep.conditions.evaluate import Candidates, View
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.explain.near_misses import Report, Stage, near_misses, nearness
from chainlake.cep.explain.parts import conjunction, in_units
from chainlake.cep.explain.report import chosen_orders
from chainlake.cep.language import ast
from chainlake.cep.language.check import PSEUDO
from chainlake.cep.language.computed import rebuilt
from chainlake.cep.language.formatter import format_node
from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.find import dataset
from chainlake.cep.values.values import Value
from chainlake.days import Days, us_of
from chainlake.errors import ChainlakeError
from chainlake.lake.records.staleness import Judged
from chainlake.markup import Html, joined, section, table, tag
from chainlake.report.reading import SourceReader
from chainlake.report.showing import Clock, number, with_unit
from chainlake.terminal import rounded

#: The largest numbers of events and evaluations of a search for near misses, which should take only seconds.
SEARCHED, EVALUATED = 50_000, 3_000_000
#: The largest number of days that are searched for near misses, of which one is shown.
_TRIED = 7
_ONE = timedelta(days=1)


@dataclass(frozen=True)
class Reason:
    """A condition of a match.

    Args:
        condition: the condition, as in the pattern's normal form.
        values: the same with values in place of names, and what the two sides of a comparison come to; for events that
            must not exist, the values of the bound events that it mentions.
        holds: whether the engine finds it true; None if it is about events that must not exist.
    """

    condition: str
    values: str
    holds: bool | None


def reasons_of(pattern: Pattern, events: pa.Table, bound: Mapping[str, Sequence[str]]) -> list[Reason]:
    """Why a match is a match.

    Args:
        pattern: the pattern.
        events: the events that a search for the match reads.
        bound: name → ids of its events.

    Returns:
        A reason per condition, those about forbidden events last; none if a bound event is not among ``events``.
    """
    data = dataset(pattern, events, by_id=True)
    ids = events["event_id"].to_pylist()
    at = {ids[row]: place for place, row in enumerate(data.rows_of(np.arange(len(data.ts))).tolist())}
    if any(one not in at for listed in bound.values() for one in listed):
        return []
    places = {name: np.array(sorted(at[one] for one in listed), np.int64) for name, listed in bound.items()}
    found: list[Reason] = []
    for branch in pattern.branches:
        if set(places) - set(branch.positive) - {one.name for one in branch.collected}:
            continue
        if not set(branch.positive) <= set(places):
            continue
        found = _of_branch(branch, data, places)
        if all(one.holds is not False for one in found):
            return found
    return found


def _of_branch(branch: Branch, data: Dataset, places: Mapping[str, np.ndarray]) -> list[Reason]:
    singles: dict[str, tuple[Candidates, np.ndarray | slice]] = {}
    groups: dict[str, tuple[Candidates, np.ndarray, np.ndarray]] = {}
    for name, rows in places.items():
        events = Candidates(data, rows)
        if name in branch.sets:
            groups[name] = (events, np.array([0, len(rows)]), np.arange(len(rows)))
        else:
            singles[name] = (events, np.zeros(1, np.int64))
    view = View(data, 1, singles, groups)
    known = set(singles) | set(groups)
    found, forbidden = [], []
    for clause in branch.every_clause:
        if clause.names <= known:
            holds = bool(view.holds(clause, frozenset(groups))[0])
            found.append(Reason(conjunction([clause]), _with_values(clause, view, data), holds))
    for name in (*branch.negated, *branch.until):
        clauses = [one for one in branch.every_clause if name in one.names]
        where = f" where {conjunction(clauses)}" if clauses else ""
        known_parts = {part for one in clauses for literal in one.literals for part in _known(literal, known)}
        put = ", ".join(
            f"{format_node(part)} = {_shown(part, view, data)}" for part in sorted(known_parts, key=format_node)
        )
        forbidden.append(Reason(f"no event {name}{where}", put, None))
    return found + forbidden


def _known(node: ast.Node, known: set[str]) -> list[ast.Node]:
    """The references to bound events in a condition about an event that is not bound."""
    return [one for one in node.walk() if isinstance(one, ast.Ref) and one.name in known]


def _with_values(clause: Clause, view: View, data: Dataset) -> str:
    """A condition with values put in; of comparisons joined by OR, only those that are true."""
    shown = []
    for literal in clause.literals:
        plain_sets = literal.plain & set(view.groups)
        if plain_sets:
            # Every member of the set has to fulfil it, so the text shows some of them and counts all.
            many = len(view.groups[sorted(plain_sets)[0]][2])
            shown.append(_members(literal, sorted(plain_sets)[0], many, view, data))
            continue
        if len(clause.literals) > 1 and not np.all(view.truth(literal)):
            continue
        shown.append(_put(literal, view, data))
    return " OR ".join(shown)


def _members(literal: ast.Node, name: str, many: int, view: View, data: Dataset) -> str:
    events, _, positions = view.groups[name]
    others = {key: value for key, value in view.groups.items() if key != name}
    said = []
    for position in positions.tolist()[:4]:
        one = View(data, 1, {**view.singles, name: (events, np.array([position]))}, others)
        said.append(_put(literal, one, data) if not literal.plain & set(others) else format_node(literal))
    more = f"; and so for all {many:,}" if many > len(said) else ""
    return "; ".join(said) + more


def _put(literal: ast.Node, view: View, data: Dataset) -> str:
    """One comparison with values in the place of names."""
    filled = format_node(_filled(literal, view, data))
    if isinstance(literal, ast.Compare):
        left, right = (_shown(side, view, data) for side in (literal.left, literal.right))
        short = f"{left} {literal.op} {right}"
        return short if short == filled else f"{filled}, that is {short}"
    return filled


def _filled(node: ast.Node, view: View, data: Dataset) -> ast.Node:
    if isinstance(node, ast.Ref | ast.Aggregate | ast.ListAggregate | ast.Prev | ast.Place):
        return _put_in(_shown(node, view, data))
    if isinstance(node, ast.Duration):
        return _put_in(in_units(node.seconds))
    if isinstance(node, ast.Literal):
        return _put_in(_text(node.value))
    found = rebuilt(node, lambda part: _filled(part, view, data))
    if isinstance(found, ast.Member):
        return replace(found, items=tuple(_put_in(_text(one.value)) for one in found.literals))
    return found


def _put_in(text: str) -> ast.Node:
    """A value's text as part of an expression, in which a negative number may need parentheses."""
    return ast.Negative(ast.Word(text[1:])) if text.startswith("-") else ast.Word(text)


def _shown(node: ast.Node, view: View, data: Dataset) -> str:
    """The value of a node, as text."""
    value: Value = view.value(node)
    raw = np.asarray(value.values).reshape(-1)[0] if not hasattr(value.values, "matrix") else None
    if raw is None:
        lists = value.values
        row = int(np.asarray(lists.rows).reshape(-1)[0])
        numbers = lists.matrix[row][: int(lists.lengths[row])]
        return f"[{', '.join(map(rounded, numbers.tolist()))}]"
    if value.kind == "null" or (value.valid is not None and not np.asarray(value.valid).reshape(-1)[0]):
        return "null"
    if value.kind == "string":
        return data.texts.words[int(raw)]
    if value.kind == "duration":
        return in_units(Fraction(int(raw), 1_000_000)) if float(raw).is_integer() else f"{float(raw) / 1e6:g} s"
    if value.kind == "time":
        return Clock("UTC").text(int(raw))
    return _text(raw.item() if isinstance(raw, np.generic) else raw)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "null" if math.isnan(value) else rounded(value, 7)
    return str(value)


# ---- near misses


_Of: TypeAlias = tuple[SourceReader, CompiledPattern]


def near_misses_of(lake: SourceReader, compiled: CompiledPattern, judged: Judged) -> Html:
    """The section of a pattern's page that shows what was nearly a match, on that of the latest days that came nearest.

    Args:
        lake: the tables.
        compiled: the pattern.
        judged: its days.
    """
    title, done = "Near misses", np.flatnonzero(judged.state == "done")
    days = [judged.day(int(at)) for at in done[::-1][:_TRIED]]
    days = [day for day in days if lake.events_on(Days.one(day))]
    if not days:
        return section(title, tag("p", "No day with events is done yet.", class_="none"))
    try:
        searched, too_much = _searched(lake, compiled, days)
    except ChainlakeError as error:
        return section(title, tag("p", f"They could not be found: {error.summary}", class_="warn"))
    if not searched:
        return section(title, _too_much(too_much, _verb(compiled, days[0])))
    best = max(searched, key=lambda one: nearness(one.reports))
    day, events = best.day, best.events
    parts = [
        part
        for branch, one in enumerate(best.reports, 1)
        for part in _funnel((lake, compiled), one, events, branch, len(best.reports))
    ]
    first = compiled.pattern.read_range(*Days.one(day).micros())[0]
    before = int(np.count_nonzero(events["ts"].cast(pa.int64()).to_numpy() < first))
    also = f" It reads {before:,} more before them, for PREV." if before else ""
    chosen_of = f", which of the last {len(searched)} days came nearest to a match," if len(searched) > 1 else ""
    about = joined([
        f"What became of the {len(events) - before:,} events that a search of {day}{chosen_of} can bind: how many "
        f"candidates each step looked at, and how many passed.{also} For other days: ",
        tag("code", _verb(compiled, day), class_="verb"),
    ])  # fmt: skip
    return section(title, *parts, about=about, name="near-misses")


@dataclass(frozen=True)
class _Searched:
    """A day with its near misses, and the events that these are rows of."""

    day: date
    events: pa.Table
    reports: Sequence[Report]


def _searched(lake: SourceReader, compiled: CompiledPattern, days: Sequence[date]) -> tuple[list[_Searched], str]:
    """The near misses of as many of the days as can be searched in a few seconds, and why the next one cannot."""
    found: list[_Searched] = []
    room, left = float(SEARCHED), float(EVALUATED)
    for day in days:
        events = lake.needed(compiled, Days.one(day).micros())
        room -= len(events)
        if room < 0:
            return found, f"{day} reads {len(events):,} events"
        choices = chosen_orders(compiled.pattern, None, events)
        cost = sum(min(one.estimates.values(), default=0.0) for one in choices)
        left -= cost
        if left < 0:
            return found, f"the search of {day} would take about {cost:,.0f} evaluations"
        plans = [one.plan for one in choices]
        reports = near_misses(compiled.pattern, events, plans, Days.one(day).micros())
        found.append(_Searched(day, events, reports))
    return found, ""


def _verb(compiled: CompiledPattern, day: date) -> str:
    return f"chainlake explain {compiled.pattern.name} --near-misses {day} {day + _ONE}"


def _too_much(why: str, verb: str) -> Html:
    return tag(
        "p", f"Not looked for, since {why}. On a command line: ", tag("code", verb, class_="verb"), class_="none"
    )


def _funnel(of: _Of, report: Report, events: pa.Table, branch: int, many: int) -> Iterator[Html]:
    if many > 1:
        yield tag("h3", f"Branch {branch} of {many}")
    top = max((stage.entered for stage in report.stages), default=0) or 1
    rows: list[tuple[object, ...]] = []
    for stage in report.stages:
        share = np.log1p(stage.entered) / np.log1p(top), np.log1p(stage.left) / np.log1p(top)
        bar = joined(
            tag("span", class_="bar", style=f"width:{part * 100:.1f}%;{tone}")
            for part, tone in zip(share, ("opacity:.35", "margin-top:1px"), strict=True)
        )
        rows.append((_step(stage), f"{stage.entered:,}", f"{stage.left:,}", bar))
    rows.append((tag("b", "matches decided on this day"), "", tag("b", f"{report.matches:,}"), ""))
    yield table(
        ("step", "looked at", "passed", "(bars on a logarithmic scale)"),
        rows,
        "The funnel: pale bars show what a step looked at, full bars what passed",
        right=[1, 2],
    )
    closest = [
        (stage, miss) for stage in reversed(report.stages) for miss in reversed(stage.misses.values()) if miss.count
    ]
    rows = [
        (
            _step(stage),
            tag("code", miss.reason),
            f"{miss.count:,}",
            _example(of, miss.examples[0], events) if miss.examples else "",
        )
        for stage, miss in closest[:12]
    ]
    if rows:
        yield tag("h3", "Those that came furthest first")
        yield table(
            ("failed at", "condition that was not true", "how many", "the nearest of them"),
            rows,
            "What rejected candidates, from the last step back to the first",
            right=[2],
        )


def _step(stage: Stage) -> str:
    verb, _, name = stage.what.partition(" ")
    words = {"take": f"find an event {name}", "iterate": f"find a set {name}", "complete": "complete the match"}
    return words.get(verb, f"events for {name} (type {verb})")


def _example(of: _Of, example: Mapping[str, Any], events: pa.Table) -> Html:
    """The events of a near miss, with the attributes that conditions mention."""
    source, compiled = of[0].source, of[1]
    clock = Clock.of(source)
    wanted = [
        one for one in sorted(compiled.pattern.mentioned - PSEUDO) if any(one == a.name for a in source.attributes)
    ]
    parts = []
    for name, row in example.items():
        listed = row if isinstance(row, list) else [row]
        one = events.slice(listed[0], 1).to_pylist()[0]
        values = ", ".join(f"{with_unit(source, each)} {number(one.get(each))}" for each in wanted if each in one)
        more = f" and {len(listed) - 1:,} more" if len(listed) > 1 else ""
        parts.append(joined([tag("b", name), f" {one[source.key]}, {clock.short(us_of(one['ts']))}, {values}{more}"]))
    return joined(parts, Html("<br>"))
