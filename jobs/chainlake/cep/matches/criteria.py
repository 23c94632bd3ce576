"""The values by which published matches are ranked, computed from the attributes of the events in their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.compiling.names import attributes_of
from chainlake.cep.compiling.tail import Measure
from chainlake.cep.conditions.blocks import Bindings
from chainlake.cep.conditions.evaluate import Candidates
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.events.dataset import Dataset, Wanted
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.pattern import Pattern
from chainlake.cep.ranking.lists import texts_of
from chainlake.cep.search.found.measured import as_arrow
from chainlake.cep.values.arrow import int64_array, numpy_of


@dataclass(frozen=True)
class OfBranch:
    """The values of rows that a branch may have found.

    Args:
        branch: its number.
        rows: the rows that bind the names of the branch, and no others.
        criteria: a column per criterion, NaN where it is missing.
        known: which criteria can be computed from a row; others depend on events that no match binds.
        texts: ``per`` (``FOR EACH``) and ``distinct_on`` as in the match table, each only if all of its values can be
            computed from a row.
    """

    branch: int
    rows: np.ndarray
    criteria: np.ndarray
    known: np.ndarray
    texts: dict[str, pa.Array]


@dataclass(frozen=True)
class _Bound:
    """The events of one name in all rows.

    Args:
        row: the row of each event, ascending.
        place: the place of each event among the events of all names.
    """

    row: np.ndarray
    place: np.ndarray


def criteria_of(pattern: Pattern, rows: pa.Table) -> Iterator[OfBranch]:
    """The values by which matches are ranked, for each branch that may have found them, from their bound events.

    Args:
        pattern: with a ranking.
        rows: of the match table, with the columns of the bound events.
    """
    ranking = pattern.extras.ranking
    assert ranking is not None, "only ranked patterns get here"
    rule, values = ranking.rule, ranking.values
    events, bound = _events(pattern, rows)
    attributes = {attr for one in values for node in one.values for _, attr in attributes_of(node)}
    stored = (attributes & set(events.column_names)) - {"event_id", "type"}
    wanted = Wanted(pattern.event_types, stored, pattern.words, by_id=True, strict=pattern.strict)
    data = Dataset(events, wanted)
    position = np.empty(len(events), np.int64)
    position[data.rows] = np.arange(len(events))
    of = Candidates(data, np.arange(len(events)))
    for number, branch in enumerate(pattern.branches):
        mine = _rows_of(pattern, branch, bound, len(rows))
        view = _bindings(branch, bound, mine, position).view(data, dict.fromkeys(branch.types, of))
        scan = Scan(data, dict.fromkeys(branch.types, of), pattern.window_us)
        known = np.array([attributes_of_value(one, number) <= stored | {"ts"} for one in values], bool)
        columns = {
            at: as_arrow(view.value(values[at].values[number]), view.n, scan, pattern.strict)
            for at in (np.flatnonzero(known).tolist() if len(mine) else ())
        }
        found = np.full((len(mine), rule.criteria), np.nan)
        for at in range(rule.criteria):
            if at in columns:
                found[:, at] = _numbers(columns[at])
        texts = {}
        for name, first, count in (("per", 0, rule.per), ("distinct_on", rule.per, rule.distinct)):
            places = range(rule.criteria + first, rule.criteria + first + count)
            if len(mine) and known[list(places)].all():
                texts[name] = texts_of([columns[at] for at in places], len(mine))
        yield OfBranch(number, mine, found, known[: rule.criteria], texts)


def attributes_of_value(measure: Measure, branch: int) -> set[str]:
    """The attributes that a value reads in a branch; values of earlier events are columns with their own names."""
    return {attr for _, attr in attributes_of(measure.values[branch])}


def _numbers(column: pa.Array) -> np.ndarray:
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    return numpy_of(pc.fill_null(column.cast(pa.float64(), safe=False), float("nan")))


def _events(pattern: Pattern, rows: pa.Table) -> tuple[pa.Table, dict[str, _Bound]]:
    """The bound events of all rows, each as often as it is bound, and the places of each name's events among them."""
    tables, bound, count = [], {}, 0
    for name in pattern.names:
        column = rows[name.name].combine_chunks()
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_list(column.type):
            row, structs = numpy_of(pc.list_parent_indices(column)), column.flatten()
        else:
            row = np.flatnonzero(numpy_of(column.is_valid()))
            structs = column.take(int64_array(row))
        bound[name.name] = _Bound(row, count + np.arange(len(row)))
        count += len(row)
        tables.append(pa.Table.from_struct_array(structs))
    return pa.concat_tables(tables, promote_options="permissive"), bound


def _rows_of(pattern: Pattern, branch: Branch, bound: dict[str, _Bound], n: int) -> np.ndarray:
    """The rows that bind the names of a branch, and no others."""
    may_be_empty = {one.name for one in branch.collected}
    good = np.ones(n, bool)
    for name in pattern.names:
        there = np.zeros(n, bool)
        there[bound[name.name].row] = True
        if name.name in branch.positive:
            good &= there
        elif name.name not in may_be_empty:
            good &= ~there
    return np.flatnonzero(good)


def _bindings(branch: Branch, bound: dict[str, _Bound], mine: np.ndarray, position: np.ndarray) -> Bindings:
    """The rows of a branch as bindings to positions among all events."""
    singles, groups = {}, {}
    names = [*branch.positive, *(one.name for one in branch.collected)]
    for name in names:
        one = bound[name]
        inside = np.isin(one.row, mine)
        row, place = np.searchsorted(mine, one.row[inside]), position[one.place[inside]]
        if name in branch.sets:
            sizes = np.bincount(row, minlength=len(mine))
            groups[name] = np.concatenate([[0], np.cumsum(sizes)]), place
        else:
            singles[name] = place
    nothing = np.zeros(len(mine), np.int64)
    return Bindings(len(mine), singles, groups, nothing, nothing)
