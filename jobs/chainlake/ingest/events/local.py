"""Landed files to events, in this process and without a lake, for looking at a few files by hand. The rules are those
of the tables, in the same functions: ``fates`` and ``corrections``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from chainlake.definitions.source import Source
from chainlake.ingest.events.corrections import PAIRS, competing, pairs_among, superseded_loads, superseded_pairs
from chainlake.ingest.events.fates import Fate, with_fates
from chainlake.ingest.landing.discovery import Landed
from chainlake.ingest.landing.effective import Effective
from chainlake.ingest.landing.plan import path_key


@dataclass(frozen=True)
class Resolved:
    """What became of rows.

    Args:
        events: the rows that are events, with the given columns, in the order (file, line, entry).
        duplicates, conflicts, superseded: how many rows were left out for each reason.
    """

    events: pa.Table
    duplicates: int
    conflicts: int
    superseded: int


def in_order(files: Sequence[Landed]) -> list[Landed]:
    """The distinct contents, each under its smallest path, in the order (file date, revision, name)."""
    first: dict[str, Landed] = {}
    for file in sorted(files, key=lambda f: f.path):
        first.setdefault(file.file_id, file)
    return sorted(first.values(), key=lambda f: (f.file_date is not None, f.file_date, f.revision, f.path))


def resolve_local(source: Source, files: Sequence[Landed], rows: Sequence[pa.Table]) -> Resolved:
    """The events among the rows of ``files``.

    Args:
        source: says what identifies an event.
        files: files as returned by ``in_order``.
        rows: the rows of each file: ``line``, ``entry``, ``type``, the key, ``ts``, the attributes, and perhaps other
            columns.
    """
    # Here files have no load, so their positions stand for it.
    effective = [
        Effective(str(n), f.file_date, f.revision, f.path, path_key(source, f.path, f.fields), whole=not f.problem)
        for n, f in enumerate(files)
    ]
    given = pa.concat_tables(rows)
    order = np.repeat(np.arange(len(rows)), [len(one) for one in rows])
    resolved = with_fates(source, given, order, _superseded(source, effective, given, order))
    fates = resolved["_fate"].to_numpy()
    counts = np.bincount(fates, minlength=len(Fate)).tolist()
    return Resolved(
        resolved.filter(pa.array(fates == Fate.EVENT)).select(given.column_names),
        duplicates=counts[Fate.DUPLICATE],
        conflicts=counts[Fate.CONFLICT],
        superseded=counts[Fate.SUPERSEDED],
    )


def _superseded(source: Source, files: Sequence[Effective], rows: pa.Table, order: np.ndarray) -> np.ndarray:
    """A flag per row that a higher revision of its scope has replaced."""
    loads = np.array([f.load_id for f in files], dtype=object)[order]
    if "key" not in source.replaces:
        return np.isin(loads, sorted(superseded_loads(source, files)))
    members = [f for several in competing(files).values() for f in several]
    held = pa.table([pa.array(loads, pa.string()), rows[source.key].cast(pa.string())], PAIRS)
    return pairs_among(held, superseded_pairs(held, members))
