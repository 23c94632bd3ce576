"""Ingest's commits to data tables: raw rows are appended; events and quarantine are changed to the wanted rows.
Each is one commit, or none if nothing differs, made under the source's lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from chainlake.definitions.source import Source
from chainlake.ingest.staged import StagedFile
from chainlake.lake.delta.data_files import DataFile
from chainlake.lake.delta.where import Condition
from chainlake.lake.store.port import Applied, Change, Lake, Part, Staged, Turn
from chainlake.schemas.quarantine import quarantine_table
from chainlake.schemas.raw import raw_table
from chainlake.storage.parquet import parquet_dataset


@dataclass(frozen=True)
class Commits:
    """The commits of one attempt.

    Args:
        source: the source.
        lake: the lake whose tables change.
        force: commit even if nothing differs, so that a dead attempt's late commit is refused.
    """

    source: Source
    lake: Lake
    force: bool

    def raw(self, files: Sequence[DataFile]) -> None:
        """Append to the raw table the data files that tasks wrote."""
        if files:
            self.lake.commit(self.lake.additions(raw_table(self.source), files), Turn(self._purpose))

    def events(self, change: Change) -> Applied:
        """Commit the change of the events that tasks found."""
        return self.lake.commit(change, Turn(self._purpose, self.force))

    def quarantine(self, rows: Quarantined, gone: Replaced) -> Applied:
        """Replace some quarantine rows by others."""
        table = quarantine_table(self.source)
        part = Part(gone.where(self.lake, self.source, rows.file_ids))
        change = self.lake.change(table, Staged(rows.paths), part)
        return self.lake.commit(change, Turn(self._purpose, self.force))

    @property
    def _purpose(self) -> str:
        return f"ingest-{self.source.name}"


@dataclass(frozen=True)
class Replaced:
    """Which quarantine rows are replaced: those of files that were read again or are gone, and conflicts of some days.

    Args:
        kept: ids of the files whose rows stay.
        days: the days whose conflicts are replaced.
    """

    kept: Collection[str]
    days: Sequence[date]

    def where(self, lake: Lake, source: Source, fresh: Collection[str]) -> list[list[Condition]]:
        """The rows as a condition; ``fresh`` are ids of files that get new rows.

        It names the files whose rows go, because those whose rows stay can be as many as the source has files.
        """
        parsed: Condition = ("stage", "=", "parse")
        held = lake.rows("quarantine", source.name, columns=["file_id"], where=[[parsed]])["file_id"]
        gone = {*pc.unique(held).to_pylist(), *fresh}.difference(self.kept)
        resolved: Condition = ("stage", "=", "resolve")
        return [
            [parsed, ("file_id", "in", sorted(gone))],
            [resolved, ("event_date", "in", list(self.days))],
        ]


@dataclass(frozen=True)
class Quarantined:
    """The quarantine rows of a run.

    Args:
        paths: Parquet files with the columns of the table.
        file_ids: ids of the files of which some rows could not be parsed.
    """

    paths: tuple[str, ...]
    file_ids: frozenset[str]


def quarantined(
    source: Source, staging: str, bad: Sequence[str], loads: Iterable[str], conflicts: Sequence[str]
) -> Quarantined:
    """Gather the quarantine rows of a run.

    Args:
        source: the source.
        staging: an existing folder.
        bad: paths of Parquet files with what could not be parsed and the load of each row.
        loads: the loads whose rows count.
        conflicts: paths of Parquet files with conflicting rows.
    """
    wanted = ds.field("load_id").isin(pa.array(sorted(loads), pa.string()))
    table = quarantine_table(source)
    schema = pa.schema([pa.field(f.name, f.type) for f in table.arrow()])
    now = datetime.now(UTC)
    file_ids: set[str] = set()
    with StagedFile(staging, "quarantine", schema) as file:
        for paths, chosen in ((bad, wanted), (conflicts, None)):
            for batch in _batches(paths, chosen):
                stamp = pa.array([now] * len(batch), schema.field("written_at").type)
                file.write(pa.Table.from_batches([batch]).append_column("written_at", stamp))
                if paths is bad:
                    file_ids |= set(pc.unique(batch["file_id"]).to_pylist())
        return Quarantined(file.close(), frozenset(file_ids))


def _batches(paths: Sequence[str], wanted: ds.Expression | None) -> Iterator[pa.RecordBatch]:
    if paths:
        yield from parquet_dataset(paths).to_batches(filter=wanted, use_threads=False)
