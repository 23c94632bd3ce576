"""Landed files to events without Spark and without a lake, for what fits memory.

``resolve`` is what tables are made by; this is for looking at a few files by hand. A test holds both to one result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from chainlake.definitions.source import Source
from chainlake.ingest.events.fates import codes, decide
from chainlake.ingest.landing.discovery import Landed
from chainlake.ingest.landing.plan import path_key


@dataclass(frozen=True)
class Resolved:
    """What came of rows.

    Args:
        events: the rows that are events, in the columns given, in the order (file, line, entry).
        duplicates, conflicts, superseded: how many rows were left out, and why.
    """

    events: pa.Table
    duplicates: int
    conflicts: int
    superseded: int


def in_order(files: Sequence[Landed]) -> list[Landed]:
    """The distinct contents, each under its smallest path, in the order (file date, revision, name) of design §3."""
    first: dict[str, Landed] = {}
    for file in sorted(files, key=lambda f: f.path):
        first.setdefault(file.file_id, file)
    return sorted(first.values(), key=lambda f: (f.file_date is not None, f.file_date, f.revision, f.path))


def resolve_local(source: Source, files: Sequence[Landed], rows: Sequence[pa.Table]) -> Resolved:
    """The events among the rows of ``files``.

    Args:
        source: says how events are told apart.
        files: as ``in_order`` gives them.
        rows: for each file its rows: ``line``, ``entry``, ``type``, the key, ``ts`` and the attributes, and any more.
    """
    tables = [table.sort_by([("line", "ascending"), ("entry", "ascending")]) for table in rows]
    table = pa.concat_tables(tables)
    order = np.repeat(np.arange(len(tables)), [len(one) for one in tables])
    alive = ~_superseded(source, files, tables)
    superseded = int((~alive).sum())
    table, order = table.filter(pa.array(alive)), order[alive]
    place = codes([table["type"], table[source.key], table["ts"]])
    found = decide(source, place, codes([table[a.name] for a in source.attributes]), order)
    events, conflicts = int(found.event.sum()), int(found.conflict.sum())
    return Resolved(table.filter(pa.array(found.event)), len(table) - events - conflicts, conflicts, superseded)


def _superseded(source: Source, files: Sequence[Landed], tables: Sequence[pa.Table]) -> np.ndarray:
    """Which rows a higher revision of their scope has replaced."""
    best: dict[Any, int] = {}
    scopes: list[list[Any]] = []
    for file, table in zip(files, tables, strict=True):
        keys: list[Any] = table[source.key].to_pylist() if "key" in source.replaces else [None] * len(table)
        # A file of a key without a row of it says that the key has none.
        named = [path_key(source, file.fields)] if "key" in source.replaces else [None]
        dated = bool(source.replaces) and file.file_date is not None
        # A file that something is wrong with as a whole replaces nothing.
        for key in {*keys, *named} if dated and not file.problem else ():
            best[file.file_date, key] = max(file.revision, best.get((file.file_date, key), 0))
        scopes.append([(file.file_date, key) if dated else None for key in keys])
    return np.array(
        [
            scope is not None and file.revision < best.get(scope, 0)
            for file, of_file in zip(files, scopes, strict=True)
            for scope in of_file
        ],
        bool,
    )
