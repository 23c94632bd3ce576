"""Warnings about what a pattern may say but its author probably does not intend."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import combinations, islice

from chainlake.cep.language import ast
from chainlake.cep.language.branches import expand
from chainlake.cep.language.check import OPEN, Checker
from chainlake.cep.language.layout import format_text
from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.language.parsing.query import parse
from chainlake.cep.language.source_text import NOWHERE, At, SourceText
from chainlake.cep.lint.calls import costly_calls
from chainlake.cep.lint.findings import (
    Apart,
    Decided,
    MissingMetadata,
    OtherLayout,
    SuspiciousText,
    Unconnected,
    UnknownValue,
    Unused,
    WideRead,
    WrittenTwice,
)
from chainlake.cep.lint.observed import pinned
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.partition import equated
from chainlake.errors import DefinitionError

DAY_US = 86_400_000_000
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def warnings_of(
    pattern: Pattern,
    source: SourceText,
    start: int,
    types: tuple[str, ...] | None,
    checker: Checker,
    key: str | None = None,
) -> list[DefinitionError]:
    """The warnings of a pattern that compiles, in the order of their places, each once.

    Args:
        pattern: the pattern.
        source: its text.
        start: the character at which its query begins.
        types: the event types that its source knows, or None.
        checker: knows the kinds of the source's columns, if there is a source.
        key: the key column of its source, if it has one.
    """
    query = parse(source, start)
    found = [*_front(pattern, source, query), *_types(query, source, types)]
    branches = iter(pattern.extras.written)
    for written in query.branches:
        for branch in islice(branches, len(expand(source, written))):
            found += _unconnected(written, branch, source, pinned(branch, key))
            found += _neighbours(written, branch, source, key is not None)
            found += _sets(written, branch, source)
    for branch in pattern.extras.written:
        found += _conditions(branch, pattern.window_us, source)
        found += unlike_kinds(branch, checker, source)
        found += _texts_in_order(branch, source)
    found += [*_two_kinds(pattern, checker, source), *_branches(query, source), *_window(pattern, query, source)]
    found += [*_gaps(pattern, query, source), *_lake(pattern, query, source), *costly_calls(pattern, source)]
    found += _windows_apart(pattern, query, source)
    if format_text(source.text, start) != source.text:
        found.append(OtherLayout.of(source))
    once = {(w.what, w.line, w.column): w for w in found}
    return sorted(once.values(), key=lambda warning: (warning.line or 0, warning.column or 0))


def _front(pattern: Pattern, source: SourceText, query: ast.Query) -> Iterator[DefinitionError]:
    front = pattern.front
    if front.source is None:
        yield MissingMetadata.source(source)
    elif not front.description:
        yield MissingMetadata.description(source, front.places["source"])
    used = set(_words(query))
    for name in front.params:
        if name not in used:
            key = "sets" if isinstance(front.params[name], tuple) and "sets" in front.places else "params"
            yield Unused.parameter(source, front.places.get(key, NOWHERE), name, key)
    left_out = [name.name for name in pattern.names if name.name not in front.rates]
    if front.rates and left_out:
        yield MissingMetadata.rates(source, front.places["rates"], left_out)


def _words(query: ast.Query) -> Iterator[str]:
    """All identifiers that could be parameters."""
    apart = None if query.episodes is None else query.episodes.pause
    for window in (query.within, query.pause, apart):
        if window is not None and isinstance(window.value, str):
            yield window.value
    values = [one.value for one in query.measures]
    scores = [branch.score for branch in query.branches]
    if query.ranking is not None:
        values += [*query.ranking.per, *query.ranking.distinct, *query.ranking.amounts]
        scores.append(query.ranking.score)
    for one in (one for score in scores if score is not None for one in score.criteria):
        values += [one.value, *(one.norm or ()), *(() if one.weight is None else (one.weight,))]
    for window, _ in (own for branch in query.branches for own in ast.windows_of(branch.structure)):
        if isinstance(window.value, str):
            yield window.value
    for where in (query.where, *(branch.where for branch in query.branches), *values):
        for node in () if where is None else where.walk():
            if isinstance(node, ast.Member):
                items = (ast.Word(node.items),) if isinstance(node.items, str) else node.items
                yield from (item.name for item in items if isinstance(item, ast.Word))
            elif isinstance(node, ast.Like) and isinstance(node.pattern, ast.Word):
                yield node.pattern.name
            elif isinstance(node, ast.Prev) and isinstance(node.gap, ast.Node):
                yield from (
                    part.name for part in node.gap.walk() if isinstance(part, ast.Word | ast.Duration) and part.name
                )
            elif isinstance(node, ast.Aggregate) and node.of is not None:
                yield from (part.name for part in node.of.walk() if isinstance(part, ast.Word))
            elif isinstance(node, ast.Word):
                yield node.name
            elif isinstance(node, ast.Duration) and node.name is not None:
                yield node.name


def _types(query: ast.Query, source: SourceText, types: tuple[str, ...] | None) -> Iterator[DefinitionError]:
    for event in (e for b in query.branches for e in ast.events_of(b.structure)):
        if types is not None and event.type not in (*types, ast.ANY_TYPE):
            yield UnknownValue.of_source(source, event.at, event.type, types)


def _unconnected(
    written: ast.Branch, branch: Branch, source: SourceText, pinned: AbstractSet[str]
) -> Iterator[DefinitionError]:
    """Names that no condition ties to the rest: every event of one goes with every event of the others.

    No warning is given where each part names the keys of an event (``pinned``): comparing chosen series is intended.
    """
    if branch.stream is not None:
        return  # Neighbours need no condition in common.
    places = {event.name: event.at for event in ast.events_of(written.structure) if event.name in branch.types}
    links = [clause.names for clause in branch.every_clause if len(clause.names) > 1]
    left, parts = list(places), []
    while left:
        near = {left[0]}
        while more := {n for names in links if names & near for n in names} - near:
            near |= more
        parts.append([name for name in left if name in near])
        left = [name for name in left if name not in near]
    largest = max(parts, key=len)
    for part in parts:
        if part is largest or (pinned & set(part) and pinned & set(largest)):
            continue
        finding = Unconnected.combined
        if part[0] in branch.negated or part[0] in branch.until:
            finding = Unconnected.rejecting
        elif part[0] in (one.name for one in branch.collected):
            finding = Unconnected.collected
        yield finding(source, places[part[0]], part)


def _neighbours(written: ast.Branch, branch: Branch, source: SourceText, by_key: bool) -> Iterator[DefinitionError]:
    if branch.stream is not None and not branch.stream.by_key and by_key:
        yield Unconnected.neighbours(source, written.at)


def _sets(written: ast.Branch, branch: Branch, source: SourceText) -> Iterator[DefinitionError]:
    """Collected sets that have the same place."""
    places = {event.name: event.at for event in ast.events_of(written.structure)}
    positive = set(branch.positive)
    for one, other in combinations((one.name for one in branch.collected), 2):
        same = branch.types[one] == branch.types[other]
        around = all(side[one] & positive == side[other] & positive for side in (branch.before, branch.after))
        if same and around:
            yield Unconnected.sets(source, places[other], one, other)


def _gaps(pattern: Pattern, query: ast.Query, source: SourceText) -> Iterator[DefinitionError]:
    """A PREV that looks back as far as the window."""
    if query.pause is not None:
        return
    values = (*pattern.extras.conditions, *pattern.extras.measured)
    for node in (node for value in values for node in value.walk()):
        if isinstance(node, ast.Prev) and node.gap is None:
            yield WideRead.gap(source, node.at, (node.name, node.attr), node.steps)


def _lake(pattern: Pattern, query: ast.Query, source: SourceText) -> Iterator[DefinitionError]:
    """What a lake refuses, since a day of a lake has to know which events it reads."""
    for window in query.counted:
        if query.within is None:
            yield WideRead.events(source, window.at, window.count)
        elif window.by_key and pattern.key is not None and not equated(pattern.extras.written, pattern.key):
            yield WideRead.events_of_key(source, window.at, pattern.key)
    if query.within is None and not query.counted and pattern.longest is None and query.pause is not None:
        yield WideRead.stretch(source, query.pause.at)


def _conditions(branch: Branch, window: int, source: SourceText) -> Iterator[DefinitionError]:
    for clause in branch.every_clause:
        at = clause.literals[0].at
        constants = [literal for literal in clause.literals if isinstance(literal, ast.Const)]
        if len(constants) == len(clause.literals):
            if not any(constant.value for constant in constants):
                yield Decided.never(source, at)
        elif not clause.names:
            yield Decided.no_event(source, at)
        yield from _time(branch, clause, window, source)
        for node in (n for literal in clause.literals for n in literal.walk()):
            for value in (node, *(node.items if isinstance(node, ast.Member) else ())):
                if isinstance(value, ast.Literal) and str(value.value).upper() in ("NULL", "NONE", "NIL"):
                    yield SuspiciousText.null(source, value.at, value.value)
    seen: set[tuple[ast.Node, ...]] = set()
    for clause in branch.every_clause:
        if clause.literals in seen:
            yield WrittenTwice.condition(source, clause.literals[0].at)
        seen.add(clause.literals)
    tightest: dict[tuple[tuple[str, str], bool], list[_Bound]] = {}
    for clause in branch.every_clause:
        bound = _bound(clause)
        if bound is None or not clause.names <= set(branch.positive):
            continue
        earlier = tightest.setdefault((bound[0], isinstance(bound[2], str)), [])
        if any(_contradict(one, bound) for one in earlier):
            yield Decided.never_together(source, clause.literals[0].at)
        earlier[:] = _tightest([*earlier, bound])


def unlike_kinds(branch: Branch, checker: Checker, source: SourceText) -> Iterator[DefinitionError]:
    """Comparisons of values of different kinds: legal, since they differ, but decided before any event is seen."""
    for literal in (literal for clause in branch.every_clause for literal in clause.literals):
        if isinstance(literal, ast.Compare) and literal.op in ("=", "!="):
            left, right = checker.kind(literal.left), checker.kind(literal.right)
            if left != right and not {left, right} & OPEN:
                yield Decided.kinds(source, literal.at, (left, right), equal=literal.op == "=")
        elif isinstance(literal, ast.Member):
            kind = checker.kind(literal.value)
            others = {checker.kind(item) for item in literal.items if isinstance(item, ast.Literal)}
            if kind not in OPEN and others and kind not in others:
                yield Decided.no_item(source, literal.at, kind)


def _texts_in_order(branch: Branch, source: SourceText) -> Iterator[DefinitionError]:
    """Numbers in quotes that are compared by order, which for texts goes letter by letter."""
    for literal in (literal for clause in branch.every_clause for literal in clause.literals):
        if isinstance(literal, ast.Compare) and literal.op in _FLIPPED:
            for side in (literal.left, literal.right):
                if isinstance(side, ast.Literal) and isinstance(side.value, str) and _NUMBER.fullmatch(side.value):
                    yield SuspiciousText.number(source, side.at, side.value)


def _two_kinds(pattern: Pattern, checker: Checker, source: SourceText) -> Iterator[DefinitionError]:
    """Attributes of unknown kind that are compared with a number in one place and with a text in another."""
    first: dict[str, str] = {}
    literals = [
        literal for branch in pattern.extras.written for clause in branch.every_clause for literal in clause.literals
    ]
    for ref, value in (pair for literal in literals for pair in _constants(literal)):
        if checker.kind(ref) in OPEN and first.setdefault(ref.attr, checker.kind(value)) != checker.kind(value):
            yield SuspiciousText.two_kinds(source, ref.at, ref.attr, checker.kind(value), first[ref.attr])


def _constants(literal: ast.Node) -> Iterator[tuple[ast.Ref, ast.Literal]]:
    """Attributes and the constants that a literal of a clause compares them with."""
    match literal:
        case ast.Compare(_, ast.Ref() as ref, ast.Literal() as value) | ast.Compare(
            _, ast.Literal() as value, ast.Ref() as ref
        ):
            yield ref, value
        case ast.Member(ast.Ref() as ref, _, items):
            yield from ((ref, item) for item in items if isinstance(item, ast.Literal))


def _time(branch: Branch, clause: Clause, window: int, source: SourceText) -> Iterator[DefinitionError]:
    """Conditions on times that the window or ≺ already decides."""
    if len(clause.literals) != 1 or not isinstance(clause.literals[0], ast.Compare):
        return
    node = clause.literals[0]
    positive = set(branch.positive)
    match (node.left, node.right):
        case (ast.Arithmetic("-", ast.Ref(_, "ts"), ast.Ref(_, "ts")), ast.Duration(size)):
            op, ticks = node.op, size * 1_000_000
        case (ast.Duration(size), ast.Arithmetic("-", ast.Ref(_, "ts"), ast.Ref(_, "ts"))):
            op, ticks = _FLIPPED.get(node.op, node.op), size * 1_000_000
        case (ast.Ref(one, "ts"), ast.Ref(other, "ts")) if node.op in _FLIPPED and branch.ordered(one, other):
            right_way = (one in branch.before[other]) == (node.op in ("<", "<="))
            yield Decided.by_order(source, node.at, true=right_way)
            return
        case _:
            return
    if clause.names <= positive:
        if op in (">", ">=", "=") and (ticks > window or op == ">" and ticks == window):
            yield Decided.beyond_window(source, node.at)
        elif op in ("<", "<=") and (ticks > window or op == "<=" and ticks == window):
            yield Decided.within_window(source, node.at)


#: ``(name, attribute) op value``.
_Bound = tuple[tuple[str, str], str, float | str]


def _contradict(first: _Bound, second: _Bound) -> bool:
    """Whether two conditions on one attribute, with values of one kind, exclude each other."""
    if first[1] == second[1] == "=":
        return first[2] != second[2]
    if first[1] in ("<", "<=") or second[1] in (">", ">="):
        first, second = second, first
    (_, above, low), (_, below, high) = first, second
    if isinstance(low, str) or isinstance(high, str) or above not in (">", ">=", "=") or below not in ("<", "<=", "="):
        return False
    return low > high or low == high and bool({above, below} & {"<", ">"})


def _tightest(bounds: list[_Bound]) -> list[_Bound]:
    """Of conditions on one attribute, the few that together exclude all that any of them excludes.

    With these, thousands of conditions need not be compared pair by pair.
    """
    equal = list({bound[2]: bound for bound in bounds if bound[1] == "="}.values())[:2]
    if bounds and isinstance(bounds[0][2], str):
        return equal
    low = [bound for bound in bounds if bound[1] in (">", ">=")]
    high = [bound for bound in bounds if bound[1] in ("<", "<=")]
    return [
        *equal,
        *sorted(low, key=lambda bound: (bound[2], bound[1] == ">"))[-1:],
        *sorted(high, key=lambda bound: (bound[2], bound[1] == "<="))[:1],
    ]


def _bound(clause: Clause) -> _Bound | None:
    match clause.literals:
        case (ast.Compare(op, ast.Ref(name, attr), ast.Literal(value)),) if not isinstance(value, bool):
            return (name, attr), op, value
        case (ast.Compare(op, ast.Literal(value), ast.Ref(name, attr)),) if not isinstance(value, bool):
            return (name, attr), _FLIPPED.get(op, op), value
    return None


def _branches(query: ast.Query, source: SourceText) -> Iterable[DefinitionError]:
    for one, other in combinations(query.branches, 2):
        if (one.structure, one.where) == (other.structure, other.where):
            yield WrittenTwice.branch(source, other.at)


def _windows_apart(pattern: Pattern, query: ast.Query, source: SourceText) -> Iterator[DefinitionError]:
    if pattern.extras.ranking is not None and query.ranking is not None:
        period = pattern.extras.ranking.rule.period
        if period.kind == "hop" and period.step > period.size:
            yield Apart.windows(source, query.ranking.period.at)


def _window(pattern: Pattern, query: ast.Query, source: SourceText) -> Iterator[DefinitionError]:
    several = all(len(branch.positive) > 1 for branch in pattern.extras.written)
    for window in query.counted:
        if window.count == 0 and several:
            yield Decided.no_events(source, window.at)
    if query.within is None:
        return
    at: At = query.within.at
    if pattern.window_us > DAY_US:
        yield WideRead.window(source, at)
    ordered = (b.ordered(x, y) for b in pattern.extras.written for x, y in combinations(b.positive, 2))
    if pattern.window_us == 0 and any(ordered):
        yield Decided.no_window(source, at)
