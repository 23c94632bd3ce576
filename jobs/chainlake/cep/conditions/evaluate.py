"""Conditions on bindings: which rows of a block make a clause TRUE (docs/semantics.md#conditions)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial, reduce
from operator import and_, or_
from typing import Any, Protocol

import numpy as np

from chainlake.cep.events.dataset import Dataset
from chainlake.cep.heavy.calls import Calls
from chainlake.cep.language import ast, functions
from chainlake.cep.language.normal_form import Clause, push_not
from chainlake.cep.values import like, operations
from chainlake.cep.values.aggregates import Function, aggregate
from chainlake.cep.values.aggregates import Members as Sets
from chainlake.cep.values.texts import Texts, Words
from chainlake.cep.values.values import NULL, Value, arithmetic, compare, member, negative, not_null, take


class Candidates:
    """The events that one name accepts, in time order.

    Args:
        data: the run's events.
        of: their sorted rows in ``data``, or which of the sorted rows they are, as ``Dataset.marks`` gives it.
    """

    def __init__(self, data: Dataset, of: np.ndarray) -> None:
        self.data = data
        if of.dtype == bool:
            self.marks = of
        else:
            self.rows = of
        self._columns: dict[str, Value] = {}

    # Each is gathered when it is first asked for, since a search may need only a few of the events of a type.

    @cached_property
    def rows(self) -> np.ndarray:
        """Their sorted rows."""
        return np.flatnonzero(self.marks)

    @cached_property
    def marks(self) -> np.ndarray:
        """Which of the sorted rows they are, as ``Dataset.marks`` gives it."""
        found = np.zeros((len(self.data.ts) // 8 + 1) * 8, bool)
        found[self.rows] = True
        return found

    @cached_property
    def ts(self) -> np.ndarray:
        """Their times."""
        return self.data.ts.take(self.rows)

    @cached_property
    def _size(self) -> int:
        return len(self.rows) if self.has_rows else int(np.count_nonzero(self.marks))

    def __len__(self) -> int:
        return self._size

    def events(self, positions: np.ndarray) -> np.ndarray:
        """The rows in the events table of some of these events."""
        return self.data.rows_of(self.rows[positions])

    @property
    def has_rows(self) -> bool:
        """Whether their rows are known, and not only their marks."""
        return "rows" in self.__dict__

    def learn(self, rows: np.ndarray, ts: np.ndarray, columns: Mapping[str, Value]) -> None:
        """Take over what was gathered about these events elsewhere."""
        self.rows, self.ts = rows, ts
        self._columns.update(columns)

    def times(self, positions: np.ndarray) -> np.ndarray:
        """The times of some of these events."""
        found: np.ndarray = self.ts[positions]
        return found

    def places(self, positions: np.ndarray) -> np.ndarray | None:
        """The places of some of these events in the stream; None if that is the order of the positions."""
        found = self.data.places
        return None if found is None else found[self.rows[positions]]

    def column(self, attr: str) -> Value:
        """An attribute of these events, gathered once."""
        if attr not in self._columns:
            self._columns[attr] = take(self.data.columns[attr], self.rows)
        return self._columns[attr]


class Coded(Protocol):
    """Events whose strings have codes."""

    calls: Calls | None

    @property
    def texts(self) -> Texts:
        """What the codes stand for."""

    def code(self, word: str) -> int:
        """The code of a string of the conditions."""

    def rows_of(self, sorted_rows: np.ndarray) -> np.ndarray:
        """The rows in the events table of some events."""


#: Bound single events: their candidates and the position of each block row's event among them (or all, as a slice).
Single = tuple[Candidates, np.ndarray | slice]
#: Bound sets of events: candidates, offsets (rows + 1), positions of all members.
Members = tuple[Candidates, np.ndarray, np.ndarray]


def spread(offsets: np.ndarray, flat: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The groups ``rows`` of a grouped array, as offsets and flat array."""
    starts, sizes = offsets[rows], offsets[rows + 1] - offsets[rows]
    ends = np.cumsum(sizes)
    index = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - sizes), sizes)
    return np.concatenate([[0], ends]), flat[index]


class View:
    """Rows on which values are computed: bindings, or bindings extended by one more event or set.

    What does not depend on the extension is computed on the parent's rows, which are fewer, and then spread.

    Args:
        data: the run's events.
        n: number of rows.
        singles: single events bound at this level.
        groups: sets bound at this level.
        parent: the bindings that were extended, or None.
        at: for each row, its row of the parent.

    ``left`` says in which rows a value that was computed depends on a call that is not known yet.
    """

    def __init__(
        self,
        data: Coded,
        n: int,
        singles: dict[str, Single],
        groups: dict[str, Members],
        parent: View | None = None,
        at: np.ndarray | None = None,
    ) -> None:
        self.data, self.n, self.singles, self.groups, self.parent, self.at = data, n, singles, groups, parent, at
        self.left = np.zeros(n, bool)

    @classmethod
    def of_all(cls, data: Dataset, name: str, candidates: Candidates) -> View:
        """One row for each candidate of one name, in their order."""
        return cls(data, len(candidates), {name: (candidates, slice(None))}, {})

    def value(self, node: ast.Node) -> Value:
        """The value of ``node`` in every row."""
        if (
            self.parent is not None
            and self.at is not None
            and not node.heavy  # heavy calls are made for the rows of the extension only, which may be fewer
            and not any(name in self.singles for name in node.plain)
            and not any(name in self.groups for name in node.aggregated)
        ):
            return take(self.parent.value(node), self.at)
        match node:
            case ast.Literal(value):
                return self.literal(value)
            case ast.Duration(size):
                ticks = size * 1_000_000
                return Value(ticks.numerator if ticks.denominator == 1 else float(ticks), None, "duration")
            case ast.Ref(name, attr):
                candidates, positions = self.singles[name]
                return take(candidates.column(attr), positions)
            case ast.Aggregate(function, name, attr):
                candidates, offsets, positions = self.groups[name]
                column = None if attr is None else take(candidates.column(attr), positions)
                sets = Sets(offsets, candidates.places(positions))
                return aggregate(Function(function, node.distinct, node.share), column, sets)
            case ast.Negative(of):
                return negative(self.value(of))
            case ast.Arithmetic(op, left, right):
                return arithmetic(op, self.value(left), self.value(right))
            case ast.ListAggregate(function, of):
                return operations.of_lists(Function(function, node.distinct, node.share), self.value(of))
            case ast.Call():
                return self.call(node)
            case ast.Case(whens, otherwise):
                found = NULL if otherwise is None else self.value(otherwise)
                for when, then in reversed(whens):
                    found = operations.choose(self.truth(when), self.value(then), found)
                return found
        raise TypeError(f"not a value: {node!r}")

    def call(self, node: ast.Call) -> Value:
        """A function applied to values."""
        if node.own is not None:
            before, self.left = self.left, np.zeros(self.n, bool)
            args = [self.value(arg) for arg in node.args]
            if self.data.calls is None:
                self.data.calls = Calls()
            value, left = self.data.calls.value(node, args, self.left, self.data.texts, self.events)
            self.left = before | left
            return value
        found = functions.lookup(node.function)
        assert found is not None, "resolve.py lets only known functions through"
        texts = self.data.texts
        if found.of_text is not None:
            result = texts.mapped(self.value(node.args[0]), found.of_text, node.function)
        else:
            plain = min(found.constants, default=len(node.args))
            constants = (arg.value for arg in node.args[plain:] if isinstance(arg, ast.Literal))
            result = self.applied(found, (*map(self.value, node.args[:plain]), *constants))
        return texts.coded(result) if isinstance(result, Words) else result

    def events(self, name: str) -> np.ndarray:
        """The rows in the events table of the single events that are bound to a name."""
        if name in self.singles:
            candidates, positions = self.singles[name]
            return self.data.rows_of(candidates.rows[positions])
        assert self.parent is not None and self.at is not None, f"{name} is not bound"
        found: np.ndarray = self.parent.events(name)[self.at]
        return found

    def applied(self, function: functions.Function, args: tuple[Any, ...]) -> Value | Words:
        """A function, other than one of a single text, applied to columns and constants."""
        assert function.apply is not None, "a function that is of no text has one"
        texts = self.data.texts
        if texts.in_order or not any(isinstance(arg, Value) and arg.kind == "string" for arg in args):
            return function.apply(args)
        found = function.apply(tuple(texts.ranked(arg) if isinstance(arg, Value) else arg for arg in args))
        return texts.unranked(found) if isinstance(found, Value) else found

    def literal(self, value: Any) -> Value:
        if isinstance(value, bool):
            return Value(value, None, "bool")
        if isinstance(value, str):
            return Value(self.data.code(value), None, "string")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return Value(float(value), None, "number")
        return Value(value, None, "number")

    def truth(self, literal: ast.Node) -> Any:
        """Where a condition is TRUE: a bool array, or one bool."""
        match literal:
            case ast.Compare(op, left, right):
                return self.compared(op, self.value(left), self.value(right))
            case ast.Member(of, negated, items):
                value = self.value(of)
                same = [item for item in map(self._item, items) if item.kind == value.kind]
                return member(value, [item.values for item in same], negated)
            case ast.IsNull(of, negated):
                return np.equal(not_null(self.value(of)), negated)
            case ast.Const(truth):
                return truth
            case ast.Like(_, _, negated):
                fits = self.fits(literal)
                return np.not_equal(fits.values, negated) & not_null(fits)
            case ast.Not(of):
                return self.truth(push_not(of, True))
            case ast.All(parts):
                return reduce(and_, map(self.truth, parts))
            case ast.Any(parts):
                return reduce(or_, map(self.truth, parts))
        raise TypeError(f"not a condition: {literal!r}")

    def compared(self, op: str, left: Value, right: Value) -> Any:
        """Where ``left op right`` is TRUE."""
        if left.kind == right.kind == "string" and op not in ("=", "!=") and not self.data.texts.in_order:
            left, right = self.data.texts.ranked(left), self.data.texts.ranked(right)
        return compare(op, left, right)

    def fits(self, node: ast.Like) -> Value:
        """Whether a string fits the pattern, regardless of ``NOT``; null for null."""
        fits = self.data.texts.mapped(
            self.value(node.value), like.test_of(node.text, node.regex), (node.regex, node.text)
        )
        assert isinstance(fits, Value), "a test of strings gives truths"
        return fits

    def _item(self, item: Any) -> Value:
        return self.literal(item.value)

    def members(self, name: str) -> Members:
        """The set bound to ``name`` in every row."""
        if name in self.groups:
            return self.groups[name]
        assert self.parent is not None and self.at is not None, f"{name} is not bound"
        candidates, offsets, positions = self.parent.members(name)
        return candidates, *spread(offsets, positions, self.at)

    def holds(self, clause: Clause, kleene: frozenset[str]) -> np.ndarray:
        """Where ``clause`` is TRUE.

        A plain reference to a name bound to a set asks for every member, so the clause is TRUE for an empty set.

        Args:
            clause: all its names are bound.
            kleene: names whose sets are bound, as sets, at this level or above.
        """
        kleene = kleene.difference(self.singles)  # a member tested on its own is a single event from here on
        everyone = sorted(clause.plain & kleene)
        if everyone:
            name = everyone[0]
            candidates, offsets, positions = self.members(name)
            at = np.repeat(np.arange(self.n), np.diff(offsets))
            each = View(self.data, len(at), {name: (candidates, positions)}, {}, self, at)
            return _every(each.holds(clause, kleene - {name}), offsets)
        truth: Any = False
        for literal in clause.literals:
            if not literal.heavy:
                truth = truth | self.truth(literal)
        found = np.broadcast_to(np.asarray(truth, bool), (self.n,))
        if not clause.heavy:
            return found
        found, untold = found.copy(), ~found
        for literal in (one for one in clause.literals if one.heavy):
            at = np.flatnonzero(untold)
            if len(at):
                found[at], left = self._at(at).tested(literal)
                untold[at] = ~(found[at] | left)
        return found

    def tested(self, literal: ast.Node) -> tuple[np.ndarray, np.ndarray]:
        """Where a condition is known to be TRUE, and where that is not known yet."""
        self.left = np.zeros(self.n, bool)
        truth = self.truth(literal)
        if self.data.calls is not None:
            self.data.calls.note(self.left)
        return truth & ~self.left, self.left

    def all_hold(self, clauses: Sequence[Clause], kleene: frozenset[str]) -> np.ndarray:
        """Where all of these clauses are TRUE; a heavy one is tested only where those before it are TRUE.

        Args:
            clauses: all their names are bound.
            kleene: as in ``holds``.
        """
        kleene = kleene.difference(self.singles)
        found = np.ones(self.n, bool)
        for clause in clauses:
            if clause.heavy:
                found = found & self._only(found, partial(View.holds, clause=clause, kleene=kleene))
            else:
                found &= self.holds(clause, kleene)
        return found

    def _only(self, where: np.ndarray, truth: Callable[[View], Any]) -> np.ndarray:
        """A condition that is computed only at the rows ``where``; false at all others."""
        rows = np.flatnonzero(where)
        found = np.zeros(self.n, bool)
        if len(rows):
            found[rows] = truth(self._at(rows))
        return found

    def _at(self, rows: np.ndarray) -> View:
        """Some of the rows, in ascending order."""
        return self if len(rows) == self.n else View(self.data, len(rows), {}, {}, self, rows)


def _every(truth: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Which groups are true throughout; empty ones are."""
    full = offsets[1:] > offsets[:-1]
    found = np.ones(len(full), bool)
    if full.any():
        found[full] = np.logical_and.reduceat(truth, offsets[:-1][full])
    return found
