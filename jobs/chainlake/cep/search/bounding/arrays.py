"""Bounds of scores, computed on columns: a number for each partial match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.language import ast
from chainlake.cep.search.bounding.extremes import Extremes, most_within
from chainlake.cep.search.bounding.score import leaves
from chainlake.cep.values.values import Value, as_float, result_kind

#: If a divisor may be closer to 0, there is no bound.
TINY = 1e-60
#: With larger numbers there are no bounds, so that no product of a few of them leaves the range of doubles.
HUGE = 1e60
#: Whole numbers below this, and sums below this, are exact as doubles.
EXACT = 2.0**53
_SECOND = 1_000_000.0


@dataclass
class Columns:
    """The columns from which bounds are computed, made once per scan.

    Args:
        scan: the events and candidates to search.
        strict: whether times are in µs.
    """

    scan: Scan
    strict: bool
    _extremes: dict[tuple[str, str, bool], Extremes] = field(default_factory=dict)

    def values(self, name: str, node: ast.Node) -> np.ndarray:
        """The values of all candidates of a name as doubles, NaN where there is none."""
        key = "as doubles", name, node.written
        if key not in self.scan.arrays:
            value, n = self.scan.value(name, node), len(self.scan.candidates[name])
            found = np.full(n, np.nan) if value.kind == "null" else as_float(value)
            self.scan.arrays[key] = (np.ascontiguousarray(np.broadcast_to(found, (n,)), np.float64),)
        return self.scan.arrays[key][0]

    def constant(self, node: ast.Node) -> float:
        """A value without events, NaN if there is none."""
        value = self.scan.nothing.value(node)
        return float("nan") if value.kind == "null" else float(np.ravel(as_float(value))[0])

    def extremes(self, name: str, node: ast.Node, upper: bool) -> Extremes:
        """The extremes of a name's values over ranges of candidates that can be in one window with a bound event."""
        key = name, node.written, upper
        if key not in self._extremes:
            longest = most_within(self.scan.candidates[name].ts, 2 * min(self.scan.window, 1 << 60) + 2)
            self._extremes[key] = Extremes(self.values(name, node), upper, longest)
        return self._extremes[key]

    def lacking(self, criteria: Sequence[ast.Node]) -> frozenset[str]:
        """The names with events that have no number for some part of these criteria."""
        parts = [(next(iter(leaf.names)), leaf) for one in criteria for leaf in leaves(one) if leaf.names]
        return frozenset(name for name, leaf in parts if np.isnan(self.values(name, leaf)).any())

    def unit(self, node: ast.Node) -> float:
        """The divisor of a criterion's value, since durations are ranked in seconds."""
        return _SECOND if self.strict and self._kind(node) == "duration" else 1.0

    def _kind(self, node: ast.Node) -> str:
        if not node.names:
            return self.scan.nothing.value(node).kind
        if len(node.names) == 1 and not node.aggregated:
            return self._value(node).kind
        match node:
            case ast.Arithmetic(op, left, right):
                kinds = self._kind(left), self._kind(right)
                return "null" if "null" in kinds else result_kind(op, *kinds)
            case ast.Call(function, args) if function.lower() == "sqrt":
                return "null" if self._kind(args[0]) == "null" else "number"
        return self._kind(node.parts()[0])

    def _value(self, node: ast.Node) -> Value:
        return self.scan.value(next(iter(node.names)), node)

    def unfit(self, criteria: Sequence[ast.Node]) -> str | None:
        """Why bounds in doubles would not hold for these criteria on these events, or None."""
        nodes = [leaf for one in criteria for leaf in leaves(one)]
        for call in (part for one in criteria for part in one.walk() if isinstance(part, ast.Call)):
            if len(call.names) > 1 and call.function.lower() in ("least", "greatest"):
                if any(self._kind(arg) not in ("number", "null") for arg in call.args):
                    return f"{call.function} of times rounds them"
        for node in nodes:
            value = self._value(node) if node.names else self.scan.nothing.value(node)
            if value.kind == "null":
                continue
            numbers = np.asarray(self.values(next(iter(node.names)), node) if node.names else self.constant(node))
            # If there are no numbers, all values are missing.
            most = float(np.nanmax(np.abs(numbers), initial=0.0))
            whole = not isinstance(value.values, float) and getattr(value.values, "dtype", np.dtype(int)).kind in "iO"
            if whole and most * len(nodes) >= EXACT:
                return "whole numbers are too large for doubles to tell apart"
            if most > HUGE:
                return f"numbers are beyond {HUGE:g}"
        return None


class Arrays:
    """Computes bounds for bindings (``score.Algebra``).

    Args:
        columns: the columns to compute from.
        bound: for each bound name, the position of its event in each partial match.
        free: for each free name, the positions ``[lo, hi)`` that it can still take, never empty.
    """

    def __init__(
        self, columns: Columns, bound: Mapping[str, Any], free: Mapping[str, tuple[np.ndarray, np.ndarray]]
    ) -> None:
        self._columns, self._bound, self._free = columns, bound, free

    def bound(self, names: frozenset[str]) -> bool:
        """As ``Algebra`` says."""
        return names <= self._bound.keys()

    def leaf(self, name: str, node: ast.Node, upper: bool) -> Any:
        """As ``Algebra`` says."""
        if name in self._bound:
            return self._columns.values(name, node)[self._bound[name]]
        return self._columns.extremes(name, node, upper).of(*self._free[name])

    def constant(self, node: ast.Node) -> Any:
        """As ``Algebra`` says."""
        return self._columns.constant(node)

    def number(self, value: float) -> Any:
        """As ``Algebra`` says."""
        return value

    def seconds(self, value: Any, node: ast.Node) -> Any:
        """As ``Algebra`` says."""
        return value / self._columns.unit(node)

    def apply(self, op: str, left: Any, right: Any, upper: bool) -> Any:
        """As ``Algebra`` says."""
        return _widened(_OPS[op](left, right), upper)

    def over(self, upper: bool, *ends: Any) -> Any:
        """As ``Algebra`` says."""
        low, high, least, most = ends
        found = low / least
        for x, y in ((low, most), (high, least), (high, most)):
            found = (np.fmax if upper else np.fmin)(found, x / y)
        said = (np.asarray(least) > TINY) | (np.asarray(most) < -TINY)
        return _widened(np.where(said, found, np.nan), upper)

    def size(self, upper: bool, low: Any, high: Any) -> Any:
        """As ``Algebra`` says."""
        if upper:
            return np.maximum(np.abs(low), np.abs(high))
        return np.where((np.asarray(low) <= 0) & (np.asarray(high) >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))

    def root(self, value: Any) -> Any:
        """As ``Algebra`` says."""
        return np.sqrt(np.maximum(value, 0.0))


class Whole(Arrays):
    """Computes bounds for all matches together: nothing is bound, and every name can take all its candidates.

    Args:
        columns: the columns to compute from.
    """

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns, {}, {})

    def leaf(self, name: str, node: ast.Node, upper: bool) -> Any:
        """As ``Algebra`` says."""
        values = self._columns.values(name, node)
        return np.fmax.reduce(values, initial=-np.inf) if upper else np.fmin.reduce(values, initial=np.inf)


def _widened(found: Any, upper: bool) -> Any:
    return np.where(np.isnan(found), np.inf if upper else -np.inf, found)


_OPS: dict[str, np.ufunc] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "least": np.minimum, "greatest": np.maximum,
}  # fmt: skip
