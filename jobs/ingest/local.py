"""Landed files to events without Spark and without a lake: the rules of ``resolve`` in NumPy, for what fits memory.

``resolve`` is what tables are made by; this is for looking at a few files by hand. A test holds both to one result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.ingest.discovery import Landed
from jobs.ingest.plan import path_key
from jobs.sources import Source


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
    place = _codes([table["type"], table[source.key], table["ts"]])
    content = _codes([table[a.name] for a in source.attributes])
    if source.identity == "multiset":
        event, conflict = _multiset(source, place, content, order), np.zeros(len(table), bool)
    else:
        event, conflict = _unique(source, place, content)
    duplicates = len(table) - int(event.sum()) - int(conflict.sum())
    return Resolved(table.filter(pa.array(event)), duplicates, int(conflict.sum()), superseded)


def _codes(columns: list[pa.ChunkedArray]) -> np.ndarray:
    """A whole number per row, equal where all columns are (a missing value equals a missing value)."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        if pa.types.is_floating(column.type):
            # -0.0 is 0.0.
            column = pc.add(column, 0.0)
        encoded = column.combine_chunks().dictionary_encode()
        encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        index = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)
        codes = np.unique(codes * (len(encoded.dictionary) + 1) + index, return_inverse=True)[1]
    return codes


def _nth(*keys: np.ndarray) -> np.ndarray:
    """How many earlier rows have the same keys, for each row."""
    codes = _joined(*keys)
    sort = np.argsort(codes, kind="stable")
    ordered = codes[sort]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.empty(0, np.int64)
    lengths = np.diff(np.r_[starts, len(ordered)])
    nth = np.empty(len(codes), np.int64)
    nth[sort] = np.arange(len(codes)) - np.repeat(starts, lengths)
    return nth


def _joined(*keys: np.ndarray) -> np.ndarray:
    codes = keys[0]
    for key in keys[1:]:
        codes = np.unique(codes * (int(key.max(initial=0)) + 1) + key, return_inverse=True)[1]
    return codes


def _unique(source: Source, place: np.ndarray, content: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``(event, conflict)`` per row: one event per place, of the content that wins there."""
    winner = np.zeros(int(place.max(initial=-1)) + 1, np.int64)
    # Of rows that are assigned to one index the last one stays.
    rows = slice(None) if source.on_conflict == "latest" else slice(None, None, -1)
    winner[place[rows]] = content[rows]
    conflict = content != winner[place]
    if source.on_conflict == "quarantine_all":
        torn = np.zeros(len(winner), bool)
        torn[place[conflict]] = True
        conflict = torn[place]
    return ~conflict & (_nth(place, content) == 0), conflict


def _multiset(source: Source, place: np.ndarray, content: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Which rows are events: each copy is one, and copies of overlapping files are the same ones."""
    if source.delivery == "disjoint":
        return np.ones(len(place), bool)
    copy = _nth(place, content, order)
    return _nth(place, content, copy) == 0


def _superseded(source: Source, files: Sequence[Landed], tables: Sequence[pa.Table]) -> np.ndarray:
    """Which rows a higher revision of their scope has replaced."""
    best: dict[Any, int] = {}
    scopes: list[list[Any]] = []
    for file, table in zip(files, tables, strict=True):
        keys: list[Any] = table[source.key].to_pylist() if "key" in source.replaces else [None] * len(table)
        # A file of a key without a row of it says that the key has none.
        named = [path_key(source, file.fields)] if "key" in source.replaces else [None]
        dated = bool(source.replaces) and file.file_date is not None
        for key in {*keys, *named} if dated else ():
            best[file.file_date, key] = max(file.revision, best.get((file.file_date, key), 0))
        scopes.append([(file.file_date, key) if dated else None for key in keys])
    return np.array(
        [
            scope is not None and file.revision < best[scope]
            for file, of_file in zip(files, scopes, strict=True)
            for scope in of_file
        ],
        bool,
    )
