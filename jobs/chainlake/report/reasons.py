"""Why a match is a match: each condition with the values of its events put in, and the engine's own verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from chainlake.cep.conditions.evaluate import Candidates, View
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.explain.parts import conjunction, in_units
from chainlake.cep.language import ast
from chainlake.cep.language.formatter import format_node
from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.find import dataset
from chainlake.cep.values.values import Value
from chainlake.report.showing import Clock


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
        return ast.Word(_shown(node, view, data))
    if isinstance(node, ast.Duration):
        return ast.Word(in_units(node.seconds))
    if isinstance(node, ast.Literal):
        return ast.Word(_text(node.value))
    changed: dict[str, Any] = {}
    for each in fields(node):
        value = getattr(node, each.name)
        if isinstance(value, ast.Node):
            changed[each.name] = _filled(value, view, data)
        elif isinstance(value, tuple) and value and all(isinstance(part, ast.Node) for part in value):
            changed[each.name] = tuple(_filled(part, view, data) for part in value)
    return replace(node, **changed)


def _shown(node: ast.Node, view: View, data: Dataset) -> str:
    """The value of a node, as text."""
    value: Value = view.value(node)
    raw = np.asarray(value.values).reshape(-1)[0] if not hasattr(value.values, "matrix") else None
    if raw is None:
        lists = value.values
        row = int(np.asarray(lists.rows).reshape(-1)[0])
        numbers = lists.matrix[row][: int(lists.lengths[row])]
        return f"[{', '.join(f'{one:.6g}' for one in numbers.tolist())}]"
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
        return "null" if math.isnan(value) else f"{value:.7g}"
    return str(value)
