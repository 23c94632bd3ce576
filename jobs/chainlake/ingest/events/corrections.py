"""Which rows a correction has replaced: those of whole files, or of the keys that a higher revision holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from chainlake.definitions.source import Source
from chainlake.env.databases import cursor
from chainlake.ingest.events.fates import codes
from chainlake.ingest.events.slices import raw_batches
from chainlake.ingest.landing.effective import Effective
from chainlake.ingest.staged import staged
from chainlake.storage.parquet import parquet_dataset

#: A load, and a key that it holds.
PAIRS = pa.schema([("load_id", pa.string()), ("key", pa.string())])


@dataclass(frozen=True)
class Superseded:
    """What higher revisions have replaced.

    Args:
        loads: loads of which no row counts.
        pairs: Parquet files of ``PAIRS``: keys of a load for which none of its rows counts.
    """

    loads: frozenset[str] = frozenset()
    pairs: tuple[str, ...] = ()

    def among(self, source: Source, rows: pa.Table) -> np.ndarray:
        """Which of ``rows``, in the columns of the raw table, are replaced: a flag per row."""
        found = np.zeros(len(rows), bool)
        if self.loads:
            loads = pa.array(sorted(self.loads), pa.string())
            found |= pc.is_in(rows["load_id"], value_set=loads).to_numpy()
        if self.pairs:
            held = rows.select(["load_id", source.key]).rename_columns(PAIRS.names)
            known = ds.field("load_id").isin(pc.unique(held["load_id"]))
            found |= pairs_among(held, parquet_dataset(self.pairs).to_table(filter=known))
        return found


@dataclass(frozen=True)
class KeysWork:
    """A task: which keys some loads hold.

    Args:
        source: the source.
        loads: the loads.
        staging: existing folder for the answer.
    """

    source: Source
    loads: tuple[str, ...]
    staging: str

    def __call__(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Search data files of the raw table.

        Returns:
            a Parquet file of ``PAIRS``; no file if there are none.
        """
        columns = ["load_id", self.source.key]
        held = [pa.Table.from_batches([batch]) for batch in raw_batches(self.source, paths, self.loads, columns)]
        pairs = [one.rename_columns(PAIRS.names).group_by(PAIRS.names).aggregate([]).cast(PAIRS) for one in held]
        found = pa.concat_tables([PAIRS.empty_table(), *pairs]).group_by(PAIRS.names).aggregate([])
        return staged(self.staging, "keys", found.cast(PAIRS))


def competing(files: Iterable[Effective]) -> dict[date, list[Effective]]:
    """Files by file date, for the dates that have several revisions."""
    by_date: dict[date, list[Effective]] = {}
    for file in files:
        if file.file_date is not None:
            by_date.setdefault(file.file_date, []).append(file)
    return {day: several for day, several in by_date.items() if len({f.revision for f in several}) > 1}


def superseded_loads(source: Source, files: Iterable[Effective]) -> frozenset[str]:
    """The loads of files that others replace as a whole; none if corrections are made key by key."""
    if not source.replaces or "key" in source.replaces:
        return frozenset()
    superseded = set()
    for several in competing(files).values():
        best = max((f.revision for f in several if f.whole), default=0)
        superseded |= {f.load_id for f in several if f.revision < best}
    return frozenset(superseded)


def superseded_pairs(held: pa.Table | ds.Dataset, files: Sequence[Effective]) -> pa.Table:
    """The keys of loads that a higher revision of the same date holds, too.

    Args:
        held: ``PAIRS`` of the loads of ``files``, from their rows, perhaps repeated. A file whose path names a key
            holds that key even without a row: it says that the key has none.
        files: files that compete.

    Returns:
        ``PAIRS``, ordered by load.
    """
    named = [f for f in files if f.key is not None]
    of_paths = pa.table([[f.load_id for f in named], [f.key for f in named]], PAIRS)
    columns = ("load_id", "file_date", "revision", "whole")
    ranks = pa.table(
        {
            "load_id": pa.array([f.load_id for f in files], pa.string()),
            "file_date": pa.array([f.file_date for f in files], pa.date32()),
            "revision": pa.array([f.revision for f in files], pa.int64()),
            "whole": pa.array([f.whole for f in files], pa.bool_()),
        }
    ).select(columns)
    with cursor() as connection:
        for name, rows in (("held", held), ("named", of_paths), ("ranks", ranks)):
            connection.register(name, rows)
        found = connection.sql(
            "WITH pairs AS (SELECT load_id, key FROM held UNION SELECT load_id, key FROM named), "
            "known AS (SELECT * FROM pairs JOIN ranks USING (load_id)), "
            "best AS (SELECT file_date, key, max(revision) FILTER (WHERE whole) AS best FROM known GROUP BY ALL) "
            "SELECT load_id, key FROM known JOIN best USING (file_date, key) WHERE revision < best ORDER BY load_id"
        )
        return found.to_arrow_table().cast(PAIRS)


def pairs_among(held: pa.Table, pairs: pa.Table) -> np.ndarray:
    """Which rows of ``held`` are among ``pairs``; both have the columns of ``PAIRS``."""
    found = codes([pa.chunked_array([*held[name].chunks, *pairs[name].chunks], pa.string()) for name in PAIRS.names])
    return np.isin(found[: len(held)], found[len(held) :])
