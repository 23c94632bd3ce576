"""Matches in files as rows: for each event its id, its time and the attributes that the pattern mentions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from chainlake.cep.library import as_dicts
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.cli.tables import local_text


@dataclass(frozen=True)
class Rows:
    """Rows for a printer.

    Args:
        columns: the names of the pattern, then its measures.
        fields: for each column the fields of an event; ``None`` for a measure or a set.
        rows: cells are mappings of fields, lists of such mappings for a set, or values of measures.
    """

    columns: list[str]
    fields: list[list[str] | None]
    rows: Iterator[list[Any]]


def printed_rows(
    pattern: Pattern,
    events: tuple[pa.Table, Sequence[Any]],
    batches: Iterator[MatchBatch],
    key: str | None,
    zone: ZoneInfo | None,
) -> Rows:
    """The matches of batches as rows.

    Args:
        pattern: the pattern.
        events: the events, one row per id, and the ids as they are printed; without events, the columns are the same.
        batches: the pattern's matches in these events.
        key: the column that says which events belong to one series, if there is one.
        zone: zone of the local times that are shown beside UTC.
    """
    table, ids = events
    shown = {name.name: _attributes(name.attributes, table, key) for name in pattern.names}
    wanted = {"ts", *(attr for attrs in shown.values() for attr in attrs)}
    # A table without rows may have no columns.
    values = {name: table[name].to_pylist() for name in wanted if name in table.column_names}
    local = None if zone is None else [local_text(ts, zone) for ts in values.get("ts", ())]

    def event(name: str, row: int) -> dict[str, Any]:
        own = {attr: values[attr][row] for attr in shown[name]}
        near = {} if local is None else {"local": local[row]}
        return {"id": ids[row], "ts": values["ts"][row], **near, **own}

    kleene = {name.name for name in pattern.names if name.kleene}
    fixed = ["id", "ts", *([] if local is None else ["local"])]
    names = [name.name for name in pattern.names]
    ranking = pattern.extras.ranking
    # Where nothing matches, the columns are the same, so that programs find them.
    measures = [*(one.name for one in pattern.extras.measures), *(() if ranking is None else ranking.rule.said)]
    # A search that fails does so before anything is printed.
    first = next(batches, None)
    fields = [None if name in kleene else [*fixed, *shown[name]] for name in names]

    def rows() -> Iterator[list[Any]]:
        for batch in ([] if first is None else [first], batches):
            for one in batch:
                for match in as_dicts(pattern, one, range(len(table))):
                    bound = [_bound(match.get(name), name, event) for name in names]
                    yield [*bound, *(match.get(name) for name in measures)]

    return Rows([*names, *measures], [*fields, *[None] * len(measures)], rows())


def _bound(found: Any, name: str, event: Any) -> Any:
    """An event, a list of events, or None if the match comes from a branch without this name."""
    if found is None:
        return None
    return [event(name, row) for row in found] if isinstance(found, list) else event(name, found)


def _attributes(mentioned: Sequence[str], events: pa.Table, key: str | None) -> list[str]:
    wanted = dict.fromkeys([*([] if key is None else [key]), *mentioned])
    known = wanted if not len(events) else events.column_names
    return [name for name in wanted if name in known and name not in ("event_id", "ts", "type")]
