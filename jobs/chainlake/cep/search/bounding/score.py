"""Bounds of a score while only some names are bound: free names range over the events that they can still take.

Every operation is done in the order and in the arithmetic of the score itself. Rounding is monotonic, so the bound in
doubles is never smaller than the score of any completion in doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Generic, Protocol, TypeVar

from chainlake.cep.language import ast
from chainlake.cep.ranking.kinds import COMBINES
from chainlake.cep.ranking.rule import Criterion, Score

T = TypeVar("T")

#: Functions of several events that have a bound.
_FUNCTIONS = frozenset({"abs", "sqrt", "least", "greatest"})
#: With more products and quotients in a criterion, a bound could leave the range of doubles.
MOST_PRODUCTS = 4


def unbounded(node: ast.Node) -> str | None:
    """Why a value of several events has no bound, in words; None if it has one."""
    products = 0
    if node.heavy:
        return f"{node.heavy[0].function} is called only for whole matches"
    for part in _joins(node):
        match part:
            case ast.Negative() | ast.Arithmetic():
                products += isinstance(part, ast.Arithmetic) and part.op in "*/"
            case ast.Call() if part.function.lower() in _FUNCTIONS:
                pass
            case ast.Call():
                return f"{part.function} of several events has no bound"
            case ast.Aggregate():
                return "the bound of a set is not known before its last event"
            case _:
                return "CASE over several events has no bound"
    return "too many products" if products > MOST_PRODUCTS else None


def leaves(node: ast.Node) -> Iterator[ast.Node]:
    """The largest parts of a value that look at one event or at none."""
    if is_leaf(node):
        yield node
        return
    for part in node.parts():
        yield from leaves(part)


def is_leaf(node: ast.Node) -> bool:
    """Whether a value looks at no more than one single event."""
    return len(node.names) <= 1 and not node.aggregated


def _joins(node: ast.Node) -> Iterator[ast.Node]:
    """The parts of a value that join several events, or look at sets."""
    if not is_leaf(node):
        yield node
        for part in node.parts():
            yield from _joins(part)


class Algebra(Protocol[T]):
    """Computes numbers, one for each partial match, in whatever form a back end has them."""

    def bound(self, names: frozenset[str]) -> bool:
        """Whether all of these names are bound."""

    def leaf(self, name: str, node: ast.Node, upper: bool) -> T:
        """The value of one event; if the name is free, the largest or smallest value that it can still take."""

    def constant(self, node: ast.Node) -> T:
        """A value without events."""

    def number(self, value: float) -> T:
        """A number of the ranking rule."""

    def seconds(self, value: T, node: ast.Node) -> T:
        """A criterion's value in seconds if it is a duration, else as it is."""

    def apply(self, op: str, left: T, right: T, upper: bool) -> T:
        """``+``, ``-``, ``*``, ``/``, ``least`` or ``greatest``; where the result is NaN, the widest bound."""

    def over(self, upper: bool, *ends: T) -> T:
        """The bound of a quotient from the ends of dividend and divisor, low before high."""

    def size(self, upper: bool, low: T, high: T) -> T:
        """The bound of an absolute value."""

    def root(self, value: T) -> T:
        """The square root; 0 for negative numbers."""


@dataclass
class Bound(Generic[T]):
    """Computes bounds.

    Args:
        to: the algebra that computes.
    """

    to: Algebra[T]

    def score(self, score: Score, nodes: Sequence[ast.Node], upper: bool = True) -> T:
        """The bound of a score; under ``lex``, of its first number, which decides first.

        Args:
            score: how criteria are combined.
            nodes: their values.
            upper: whether to compute the upper bound, not the lower one.
        """
        to, pairs = self.to, list(zip(score.criteria, nodes, strict=True))
        if not score.combine or COMBINES[score.combine].join is None:
            return self._utility(*pairs[0], upper=upper)
        if score.combine == "wsum":
            parts = [
                to.apply("*", to.number(one.weight), self._utility(one, node, upper=upper == (one.weight >= 0)), upper)
                for one, node in pairs
            ]
        else:
            parts = [self._utility(one, node, upper=upper) for one, node in pairs]
        op = COMBINES[score.combine].bound
        assert op is not None, f"no search asks for bounds of COMBINE {score.combine}"
        found = reduce(lambda x, y: to.apply(op, x, y, upper), parts)
        return to.apply("/", found, to.number(float(len(parts))), upper) if score.combine == "avg" else found

    def _utility(self, criterion: Criterion, node: ast.Node, *, upper: bool) -> T:
        to = self.to
        found = to.seconds(self.value(node, upper == criterion.highest), node)
        if criterion.norm is None:
            return found if criterion.highest else to.apply("-", to.number(0.0), found, upper)
        low, high = map(to.number, criterion.norm)
        distance = to.apply("-", found, low, upper) if criterion.highest else to.apply("-", high, found, upper)
        width = to.number(criterion.norm[1] - criterion.norm[0])
        share = to.apply("/", distance, width, upper)
        return to.apply("least", to.apply("greatest", share, to.number(0.0), upper), to.number(1.0), upper)

    def value(self, node: ast.Node, upper: bool) -> T:
        """The bound of a value."""
        to = self.to
        if not node.names:
            return to.constant(node)
        if is_leaf(node):
            return to.leaf(next(iter(node.names)), node, upper)
        match node:
            case ast.Negative(of):
                return to.apply("-", to.number(0.0), self.value(of, not upper), upper)
            case ast.Arithmetic("+", left, right):
                return to.apply("+", self.value(left, upper), self.value(right, upper), upper)
            case ast.Arithmetic("-", left, right):
                return to.apply("-", self.value(left, upper), self.value(right, not upper), upper)
            case ast.Arithmetic(op, left, right):
                return self._product(op, left, right, upper)
            case ast.Call(function, args):
                return self._call(function.lower(), args, upper)
        raise TypeError(f"a value without a bound: {node!r}")

    def _product(self, op: str, left: ast.Node, right: ast.Node, upper: bool) -> T:
        to = self.to
        if op == "/":
            return to.over(upper, *self._ends(left), *self._ends(right))
        lows, highs = zip(*(self._ends(side) for side in (left, right)), strict=True)
        sides = [[low] if low is high else [low, high] for low, high in zip(lows, highs, strict=True)]
        corners = [to.apply("*", x, y, upper) for x in sides[0] for y in sides[1]]
        return reduce(lambda x, y: to.apply("greatest" if upper else "least", x, y, upper), corners)

    def _call(self, function: str, args: tuple[ast.Node, ...], upper: bool) -> T:
        to = self.to
        if function == "abs":
            return to.size(upper, *self._ends(args[0]))
        if function == "sqrt":
            return to.root(self.value(args[0], upper))
        step: Callable[[T, T], T] = lambda x, y: to.apply(function, x, y, upper)  # noqa: E731
        return reduce(step, [self.value(arg, upper) for arg in args])

    def _ends(self, node: ast.Node) -> tuple[T, T]:
        """The lower and the upper bound, the same object if all names are bound."""
        high = self.value(node, True)
        return (high, high) if self.to.bound(node.names) else (self.value(node, False), high)
