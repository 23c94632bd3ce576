"""Conditions on one binding at a time, as plain Python functions: what the event-order run tests.

The kinds of all columns are known when a clause is compiled, so everything that depends only on kinds is decided then.
Null is ``None``, strings are their codes in the sorted vocabulary, and lists are values of one row.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from chainlake.cep.conditions.evaluate import Candidates, Single, View
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.language import ast, functions
from chainlake.cep.language.normal_form import Clause
from chainlake.cep.values.values import Value, arithmetic, not_null, take

#: Name to the sorted row of its event, or to the ascending rows of its set.
Bound = dict[str, Any]
#: Computes a value from the single event of each plainly mentioned name and from the binding (for aggregates).
_Value = Callable[[Bound, Bound], Any]

_COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
#: Aggregates of the values that are not null, in order; other aggregates are computed as the search computes them.
_OF_VALUES: dict[str, Callable[[list[Any]], Any]] = {
    "COUNT": len,
    "SUM": lambda values: _total(values),
    "AVG": lambda values: _total(values) / len(values),
    "MIN": min,
    "MAX": max,
}
_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def _null(one: Bound, bound: Bound) -> None:
    return None


class Conditions:
    """Compiles clauses over the events of one run.

    Args:
        data: the run's events.
    """

    def __init__(self, data: Dataset) -> None:
        self._data = data
        self._nothing = View(data, 0, {}, {})
        self._columns: dict[str, list[Any]] = {}

    def all_of(self, clauses: tuple[Clause, ...], kleene: frozenset[str]) -> Callable[[Bound], bool]:
        """Whether all clauses are TRUE on a binding.

        Args:
            clauses: all their names are bound.
            kleene: names that the binding has as sets.
        """
        tests = [self._clause(clause, kleene) for clause in clauses]
        if len(tests) == 1:
            return tests[0]
        return lambda bound: all(test(bound) for test in tests)

    def _clause(self, clause: Clause, kleene: frozenset[str]) -> Callable[[Bound], bool]:
        literals = [self._truth(literal) for literal in clause.literals]
        everyone = sorted(clause.plain & kleene)
        if everyone:

            def for_all(bound: Bound) -> bool:
                for choice in product(*(bound[name] for name in everyone)):
                    one = {**bound, **dict(zip(everyone, choice, strict=True))}
                    if not any(literal(one, bound) for literal in literals):
                        return False
                return True

            return for_all
        if len(literals) == 1:
            only = literals[0]
            return lambda bound: only(bound, bound)
        return lambda bound: any(literal(bound, bound) for literal in literals)

    # ---- comparisons, memberships, constants

    def _truth(self, literal: ast.Node) -> Callable[[Bound, Bound], bool]:
        match literal:
            case ast.Compare(op, left, right):
                return self._compare(op, *self._value(left), *self._value(right))
            case ast.Member(of, negated):
                value, kind = self._value(of)
                literals = [self._nothing.literal(item.value) for item in literal.literals]
                same = [item.values for item in literals if item.kind == kind]
                # as in values.compare: a whole number against a double is a double
                others = {x for x in same if not isinstance(x, float)}
                doubles = {x for x in same if isinstance(x, float)}
                as_doubles = doubles | {float(x) for x in others}

                def inside(one: Bound, bound: Bound) -> bool:
                    x = value(one, bound)
                    if x is None:
                        return False
                    if isinstance(x, float):
                        return (x in as_doubles) != negated
                    return (x in others or (bool(doubles) and float(x) in doubles)) != negated

                return inside
            case ast.IsNull(of, negated):
                value, kind = self._value(of)
                if kind == "list":
                    return lambda one, bound: bool(np.all(not_null(value(one, bound)))) == negated
                return lambda one, bound: (value(one, bound) is not None) == negated
            case ast.Const(truth):
                return lambda one, bound: truth
            case ast.Like():
                return lambda one, bound: bool(np.all(self._view(literal, one, bound).truth(literal)))
        raise TypeError(f"not a literal of a clause: {literal!r}")

    def _compare(
        self, op: str, left: _Value, left_kind: str, right: _Value, right_kind: str
    ) -> Callable[[Bound, Bound], bool]:
        if "null" in (left_kind, right_kind) or (left_kind != right_kind and op == "="):
            return lambda one, bound: False
        if left_kind != right_kind:
            return lambda one, bound: left(one, bound) is not None and right(one, bound) is not None
        holds = _COMPARE[op]
        if left_kind == "string" and op not in ("=", "!="):
            texts = self._data.texts
            left, right = (_unless_null(lambda code: texts.words[code], side) for side in (left, right))

        def compare(one: Bound, bound: Bound) -> bool:
            x, y = left(one, bound), right(one, bound)
            if x is None or y is None:
                return False
            # as NumPy does: a whole number against a double is a double
            return bool(holds(x, y) if type(x) is type(y) else holds(float(x), float(y)))

        return compare

    # ---- values

    def _value(self, node: ast.Node) -> tuple[_Value, str]:
        """The function that computes ``node``, and its kind."""
        match node:
            case ast.Literal(value):
                literal = self._nothing.literal(value)
                return _constant(literal.values), literal.kind
            case ast.Duration():
                duration = self._nothing.value(node)
                return _constant(duration.values), duration.kind
            case ast.Ref(name, attr):
                kind = self._data.columns[attr].kind
                if kind == "null":
                    return _null, kind
                if kind == "list":
                    whole = self._data.columns[attr]
                    return lambda one, bound: take(whole, np.array([one[name]])), kind
                column = self._column(attr)
                return lambda one, bound: column[one[name]], kind
            case ast.Aggregate():
                return self._aggregate(node)
            case ast.Negative(of):
                inner, kind = self._value(of)
                return (_null if kind == "null" else _unless_null(operator.neg, inner)), kind
            case ast.Arithmetic(op, left, right):
                return self._arithmetic(op, *self._value(left), *self._value(right))
            case ast.Call(function, (only,)):
                scalar = functions.scalar_of(function)
                if scalar is None:
                    return self._as_the_search(node)
                inner, kind = self._value(only)
                return (_null if kind == "null" else _unless_null(scalar, inner)), kind
            case ast.Call() | ast.Case() | ast.ListAggregate():
                return self._as_the_search(node)
        raise TypeError(f"not a value: {node!r}")

    def _column(self, attr: str) -> list[Any]:
        if attr not in self._columns:
            value = self._data.columns[attr]
            found = value.values.tolist()
            if value.valid is not None:
                found = [x if valid else None for x, valid in zip(found, value.valid.tolist(), strict=True)]
            self._columns[attr] = [None if x != x else x for x in found]
        return self._columns[attr]

    def _arithmetic(self, op: str, left: _Value, left_kind: str, right: _Value, right_kind: str) -> tuple[_Value, str]:
        if "null" in (left_kind, right_kind):
            return _null, "null"
        kind = arithmetic(op, Value(1, None, left_kind), Value(1, None, right_kind)).kind
        apply = _ARITHMETIC[op]
        exact = op in "+-"  # Python adds whole numbers exactly, and a whole number and a double as doubles

        def compute(one: Bound, bound: Bound) -> Any:
            x, y = left(one, bound), right(one, bound)
            if x is None or y is None or (op == "/" and y == 0):
                return None
            result = apply(x, y) if exact else apply(float(x), float(y))
            return None if result != result else result

        return compute, kind

    def _aggregate(self, node: ast.Aggregate) -> tuple[_Value, str]:
        function, name, attr = node.function, node.name, node.attr
        if attr is None:
            return lambda one, bound: len(bound[name]), "number"
        known, kind = ast.AGGREGATES[function], self._data.columns[attr].kind
        given = known.gives(kind)
        assert given is not None, "check.py lets no other kinds through"
        if kind == "null":
            return (_constant(0) if known.counts else _null), given
        if node.distinct or function not in _OF_VALUES:
            return self._as_the_search(node)[0], given
        column, of = self._column(attr), _OF_VALUES[function]

        def compute(one: Bound, bound: Bound) -> Any:
            values = [x for x in (column[row] for row in bound[name]) if x is not None]
            return of(values) if values or known.counts else None

        return compute, given

    def _as_the_search(self, node: ast.Node) -> tuple[_Value, str]:
        """A value that is computed as the search computes it, on one binding at a time."""
        names = node.names

        def compute(one: Bound, bound: Bound) -> Any:
            found = self._view(node, one, bound).value(node)
            return found if found.kind == "list" else _unboxed(found)

        nobody: Bound = dict.fromkeys(names, ())
        return compute, View(self._data, 0, *self._bound(node, nobody, nobody, 0)).value(node).kind

    def _view(self, node: ast.Node, one: Bound, bound: Bound) -> View:
        """A view of one row, with the part of a binding that a value or a condition looks at."""
        return View(self._data, 1, *self._bound(node, one, bound, 1))

    def _bound(
        self, node: ast.Node, one: Bound, bound: Bound, rows: int
    ) -> tuple[dict[str, Single], dict[str, tuple[Candidates, np.ndarray, np.ndarray]]]:
        every = self._every
        singles: dict[str, Single] = {
            name: (every, np.atleast_1d(np.array(one[name], np.int64))) for name in node.plain
        }
        sets = {name: np.array(bound[name], np.int64) for name in node.aggregated}
        return singles, {name: (every, np.array([0, len(of)])[: rows + 1], of) for name, of in sets.items()}

    @cached_property
    def _every(self) -> Candidates:
        return Candidates(self._data, np.arange(len(self._data.ts)))


def _total(values: list[Any]) -> float:
    total = 0.0
    for x in values:  # as the kernel adds them
        total += x
    return total


def _constant(value: Any) -> _Value:
    return lambda one, bound: value


def _unless_null(function: Callable[[Any], Any], inner: _Value) -> _Value:
    def compute(one: Bound, bound: Bound) -> Any:
        x = inner(one, bound)
        return None if x is None else function(x)

    return compute


def _unboxed(column: Value) -> Any:
    if column.kind == "null" or (column.valid is not None and not column.valid[0]):
        return None
    x = column.values[0].item() if isinstance(column.values, np.ndarray) else column.values
    return None if x != x else x
