"""Leaves out candidates that cannot pass, whatever else is bound, before the search.

If candidates are compared with other events, few may be left, and the others are not gathered, sorted or
looked at. A search that counts evaluations still counts them (``counted``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from chainlake.cep.conditions.evaluate import Candidates
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.search.compiled import machine
from chainlake.cep.search.compiled.passing.comparisons import SMALLER, PreFilter
from chainlake.cep.search.compiled.passing.sweep import BLOCK, LEAST, NOTHING, SHIFT, SOURCE, WORDS
from chainlake.cep.values.values import Value

#: Prefilters that are applied at a time: all look at the candidates as they were before.
Together = tuple[PreFilter, ...]


def only_passing(scan: Scan, passes: Sequence[Together], read: Mapping[str, Collection[str]] | None = None) -> Scan:
    """The scan without candidates that cannot pass; ``counted`` has all candidates of these names.

    Args:
        scan: the scan.
        passes: what is applied, one after another.
        read: names, each with attributes of its events, 64-bit numbers without a mask of nulls, that are gathered too.
    """
    candidates, counted = dict(scan.candidates), dict[str, Candidates]()
    for together in passes:
        left = _left(replace(scan, candidates=candidates), together, read or {})
        counted |= {name: candidates[name] for name in left if name not in counted}
        candidates |= left
    return replace(scan, candidates=candidates, counted=counted, arrays={}) if counted else scan


@dataclass
class _Arguments:
    """The arguments of the passes: arrays of whole numbers, and the numbers that describe the work."""

    arrays: list[np.ndarray] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def put(self, values: np.ndarray) -> int:
        """The number of an array, whose values have 64 bits."""
        self.arrays.append(np.ascontiguousarray(values).view(np.int64))
        return len(self.arrays) - 1


#: A name, an attribute and whether the largest value counts: the limit with which candidates are compared.
_Limit = tuple[str, str, bool]


def _left(scan: Scan, together: Together, read: Mapping[str, Collection[str]]) -> dict[str, Candidates]:
    """The candidates of each name that pass the comparisons with some event within a window of their block."""
    data, given = scan.data, _Arguments()
    ts, hits = np.ascontiguousarray(data.ts, np.int64), np.empty(8 * WORDS, bool)
    blocks = (len(ts) + BLOCK - 1) >> SHIFT
    # A queue holds each block, or each word of a part, at most once.
    for values in (ts, *np.empty((3, blocks + WORDS), np.int64), hits):
        given.put(values)
    limits = list(dict.fromkeys(map(_limit_of, together)))
    best = {limit: _describe_limit(scan, limit, blocks, given) for limit in limits}
    reached: dict[tuple[_Limit, bool, bool], int] = {}
    for one in together:
        reach = _limit_of(one), one.before, one.behind
        if reach not in reached:
            reached[reach] = given.put(np.empty(blocks, np.int64))
            given.numbers += [best[reach[0]], one.before, one.behind, reached[reach]]
    found = {}
    for name in dict.fromkeys(one.name for one in together):
        of, own = scan.candidates[name], [one for one in together if one.name == name]
        attributes = sorted({one.attr for one in own}.union(read.get(name, ())))
        # One entry more than there are candidates, since a row that is not one is written after the last of them.
        rows, times, *columns = found[name] = np.empty((len(attributes) + 2, len(of) + 1), np.int64)
        given.numbers += [given.put(of.marks), given.put(rows), given.put(times), len(own), len(attributes)]
        for one in own:
            values, reach = _plain(data.columns[one.attr]), (_limit_of(one), one.before, one.behind)
            given.numbers += [
                *_order(values, one.op in SMALLER),
                one.op in ("<", ">"),
                given.put(values),
                reached[reach],
            ]
        for attr, column in zip(attributes, columns, strict=True):
            given.numbers += [given.put(_plain(data.columns[attr])), given.put(column)]
    numbers = np.array([len(ts), scan.window, len(limits), len(reached), len(found), *given.numbers], np.int64)
    sizes = np.zeros(len(found), np.int64)
    machine.load(SOURCE)([], given.arrays, [hits], [], machine.NOTHING, numbers, sizes)
    left = {}
    for n, (name, made) in zip(sizes.tolist(), found.items(), strict=True):
        rows, times, *columns = made[:, :n]
        attributes = sorted({one.attr for one in together if one.name == name}.union(read.get(name, ())))
        values = {}
        for attr, column in zip(attributes, columns, strict=True):
            every = data.columns[attr]
            values[attr] = Value(column.view(_plain(every).dtype), None, every.kind)
        left[name] = Candidates(data, rows)
        left[name].learn(rows, times, values)
    return left


def _limit_of(one: PreFilter) -> _Limit:
    return one.other, one.other_attr, one.op in SMALLER


def _describe_limit(scan: Scan, limit: _Limit, blocks: int, given: _Arguments) -> int:
    """Describe a limit; returns the number of the array with the best key of each block."""
    name, attr, largest = limit
    of = scan.candidates[name]
    values = _plain(of.column(attr) if of.has_rows else scan.data.columns[attr])
    best = given.put(np.full(blocks, NOTHING, np.int64))
    listed = (len(of), of.rows) if of.has_rows else (-1, of.marks)
    given.numbers += [*_order(values, largest), listed[0], given.put(values), best, given.put(listed[1])]
    return best


def _order(values: np.ndarray, largest: bool) -> tuple[int, int, int]:
    """How keys are made of values: what mirrors negative doubles, what turns the order around, and the least key."""
    mirror, least = (2**63 - 1, LEAST) if values.dtype == np.float64 else (0, NOTHING)
    return mirror, 0 if largest else -1, least


def _plain(column: Value) -> np.ndarray:
    """The values of a column as doubles or 64-bit whole numbers."""
    return np.ascontiguousarray(column.values, np.float64 if column.values.dtype.kind == "f" else np.int64)
