"""The input of a search: the events of one run, each name's candidates among them, and the window."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from chainlake.cep.conditions.evaluate import Candidates, View
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.language import ast
from chainlake.cep.values.values import Value

#: How many candidate bindings are in memory at a time and level.
BLOCK_ROWS = 1 << 17


@dataclass(frozen=True)
class Scan:
    """The events of one run as one branch sees them.

    Args:
        data: the events.
        candidates: of every name, positive and negated.
        window: in ticks.
        block_rows: largest number of candidate bindings in memory at a time and level.
        arrays: what was computed from the events once and is needed again.
        counted: all candidates of those names for which ``candidates`` has only those that can pass.
    """

    data: Dataset
    candidates: dict[str, Candidates]
    window: int
    block_rows: int = BLOCK_ROWS
    arrays: dict[Hashable, tuple[np.ndarray, ...]] = field(default_factory=dict, repr=False, compare=False)
    counted: Mapping[str, Candidates] = field(default_factory=dict)
    _values: dict[tuple[str, str], Value] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def nothing(self) -> View:
        """One row on which no name is bound."""
        return View(self.data, 1, {}, {})

    def value(self, name: str, node: ast.Node) -> Value:
        """The value of ``node`` for every candidate of ``name``, the only name that it mentions."""
        of = self.candidates[name]
        if isinstance(node, ast.Ref):
            return of.column(node.attr)
        key = (name, node.written)
        if key not in self._values:
            self._values[key] = View.of_all(self.data, name, of).value(node)
        return self._values[key]

    def truth(self, name: str, literal: ast.Node) -> np.ndarray:
        """Where ``literal`` is TRUE, for every candidate of ``name``, the only name that it mentions."""
        of = self.candidates[name]
        truth = View.of_all(self.data, name, of).truth(literal)
        return np.broadcast_to(np.asarray(truth, bool), (len(of),))
