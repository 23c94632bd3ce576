"""How a new version of a match table takes the place of the old one, whose path never changes under a reader.

An edit that changes the output columns is published to ``<pattern>/v2``, which is beside the table. When every day
that the old table had is done there, one commit on the old table replaces its columns and all its rows. The commit says
which table it took (a transaction named after that table's id), so a process that finds both knows what is left to do:
record the days under the table that has them now, then remove the other. If a run is killed anywhere in between, the
pattern's next step, publication or maintenance does this before anything else.

In lakes of older releases, later versions are inside the folder of the first, where another program's clean-up takes
their files for leftovers. They are moved out first, each by one rename.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from chainlake.errors import InfrastructureError
from chainlake.lake.delta.log import require_taken
from chainlake.lake.delta.reader import open_table
from chainlake.lake.delta.tables import exists
from chainlake.lake.errors import ConcurrentWriter
from chainlake.lake.faults import around
from chainlake.lake.locks import WAIT_SECONDS, file_lock
from chainlake.lake.records import ops
from chainlake.lake.records.defined.registered import choose, later_versions, recorded
from chainlake.paths import Home
from chainlake.schemas.ops_rows import IntervalRow
from chainlake.storage.resolve import storage_of

if TYPE_CHECKING:
    from deltalake import DeltaTable

#: Ending of the folder name of a version that is being removed.
_GONE = "-gone"


class DivergedVersions(InfrastructureError):
    """A version of a match table is in two places."""

    @classmethod
    def of(cls, name: str, nested: str, beside: str) -> DivergedVersions:
        """Args: the table's name, and the two places where it is."""
        return cls(
            f"table matches.{name} exists in two places, {nested} and {beside}: an older release has published to the "
            "first after it was moved to the second",
            hint=f"End what runs with the older release, remove {nested}, and restate the days it published.",
        )


class NotMoved(InfrastructureError):
    """A version of a match table cannot be moved out of the folder of the first."""

    @classmethod
    def of(cls, name: str, nested: str, beside: str, error: OSError) -> NotMoved:
        """Args: the table's name, where it is, where it should be, and what the system says."""
        return cls(
            f"table matches.{name} cannot be moved from {nested} to {beside}: {error.strerror}",
            hint="Move the folder by hand while no step runs; until then no program may VACUUM the table around it.",
        )


class RowsLost(InfrastructureError):
    """A table that took the rows of another does not hold as many: a bug, noticed at once."""

    held: int
    wanted: int

    @classmethod
    def of(cls, pattern: str, name: str, held: int, wanted: int) -> RowsLost:
        """Args: the pattern, the table whose rows its table took, and the row counts of both."""
        return cls(
            f"matches.{pattern} holds {held} rows after it took those of matches.{name}, which has {wanted}",
            hint=f"matches.{name} was kept; restate the days of the pattern.",
        ).holding(held=held, wanted=wanted)


def table_lock(name: str) -> str:
    """The lock that writers of a match table hold, the same for all versions: one can take another's place."""
    return f"table-matches.{name.partition('/')[0]}"


def with_later_versions(home: Home) -> list[str]:
    """Patterns whose match tables have later versions beside them, or in their folders."""
    files = storage_of(home.lake)
    names = {*files.folders(home.next_tables("matches")), *files.folders(home.table("matches", "").rstrip("/"))}
    return [name for name in sorted(names) if later_versions(home, name)]


def take_places(
    home: Home, patterns: Iterable[str], run_id: str, *, wait_s: float = WAIT_SECONDS
) -> tuple[list[str], dict[str, InfrastructureError]]:
    """Give each pattern's place to its new version if every day is there; no JVM.

    Args:
        home: the installation.
        patterns: their names.
        run_id: the run under which it is recorded.
        wait_s: how many seconds to wait for another writer of a table.

    Returns:
        the patterns whose table is now another one or is elsewhere; and those for which it failed, each with the
        reason, such as a table that was being written the whole time.
    """
    changed: list[str] = []
    stuck: dict[str, InfrastructureError] = {}
    for pattern in patterns:
        try:
            if not _due(home, pattern):
                continue
            with file_lock(home, table_lock(pattern), wait_s=wait_s):
                if take_place(home, pattern, run_id):
                    changed.append(pattern)
        except InfrastructureError as error:
            # One table must not keep the others from their places.
            stuck[pattern] = error
    return changed, stuck


def take_place(home: Home, pattern: str, run_id: str) -> bool:
    """Do the same for one pattern, whose table lock the caller holds; return whether anything was done."""
    moved = _move_out(home, pattern)
    _remove_gone(f"{home.next_tables('matches')}/{pattern}")
    later = later_versions(home, pattern)
    if not later or not exists(home, "matches", pattern):
        return moved
    taken = [number for number in later if _taken_as(home, pattern, number) is not None]
    if not taken:
        winner = _winner(home, pattern, later)
        if winner is None:
            return moved
        with around("place.commit"):
            _replace(home, pattern, winner)
        taken = [winner]
    for number in taken:
        version = _taken_as(home, pattern, number)
        assert version is not None
        with around("place.notes"):
            _note(home, pattern, number, version, run_id)
        with around("place.drop"):
            _drop(home.table("matches", f"{pattern}/v{number}"))
    return True


def held_version(home: Home, pattern: str) -> str | None:
    """The later version whose rows are already in the pattern's place, though its days may not be recorded there
    yet.
    """
    if not exists(home, "matches", pattern):
        return None
    held = [number for number in later_versions(home, pattern) if _taken_as(home, pattern, number) is not None]
    return f"{pattern}/v{held[-1]}" if held else None


def _due(home: Home, pattern: str) -> bool:
    """Whether there is anything to do, as far as one can tell without the lock."""
    later = later_versions(home, pattern)
    if not later:
        return False
    if any(_nested(home, pattern, number) for number in later):
        return True
    if not exists(home, "matches", pattern):
        return False
    taken = any(_taken_as(home, pattern, number) is not None for number in later)
    return taken or _winner(home, pattern, later) is not None


def _winner(home: Home, pattern: str, later: list[int]) -> int | None:
    """The later version that the pattern's name should stand for; ``None`` if it is the one in the place."""
    name = choose(pattern, [1, *later], recorded(home, pattern))
    return None if name == pattern else int(name.rpartition("/v")[2])


def _taken_as(home: Home, pattern: str, number: int) -> int | None:
    """The commit with which the table in the place took a later version's rows; ``None`` if it has not."""
    other = open_table(home, "matches", f"{pattern}/v{number}", without_files=True)
    return open_table(home, "matches", pattern, without_files=True).transaction_version(_mark(other))


def _mark(table: DeltaTable) -> str:
    return f"took-{table.metadata().id}"


def _replace(home: Home, pattern: str, number: int) -> None:
    """Replace the columns and rows in the place by those of a later version, in one commit."""
    from deltalake import CommitProperties, Transaction, write_deltalake
    from deltalake.exceptions import CommitFailedError

    name = f"{pattern}/v{number}"
    other, at = open_table(home, "matches", name), open_table(home, "matches", pattern, to_write=True)
    rows = other.to_pyarrow_dataset()
    turn = at.version() + 1
    properties = CommitProperties(
        custom_metadata={"userMetadata": f"columns and rows of matches.{name}"},
        # It also takes the turn of the place's writers, so that a dead writer's late commit is refused.
        app_transactions=[Transaction(_mark(other), turn), Transaction(f"table-matches.{pattern}", turn)],
        max_commit_retries=0,
    )
    stream = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
    try:
        write_deltalake(at, stream, mode="overwrite", schema_mode="overwrite", commit_properties=properties)
    except CommitFailedError:
        require_taken(at, turn - 1)
        raise ConcurrentWriter.replacing(f"matches.{pattern}", f"matches.{name}") from None
    held = open_table(home, "matches", pattern).to_pyarrow_dataset().count_rows()
    if held != rows.count_rows():
        raise RowsLost.of(pattern, name, held, rows.count_rows())


def _note(home: Home, pattern: str, number: int, version: int, run_id: str) -> None:
    """Record, in one append, that the days of a later version are now in the pattern's place."""
    name = f"matches.{pattern}/v{number}"
    rows: list[IntervalRow] = [
        {
            **ops.again(row),
            "table_name": f"matches.{pattern}",
            "published_version": version,
            "added": None,
            "changed": None,
            "withdrawn": None,
        }
        for row in ops.current(home, "intervals", definition=f"pattern/{pattern}")
        if row["table_name"] == name
    ]
    ops.append(home, "intervals", rows, run_id)


def _nested(home: Home, pattern: str, number: int) -> bool:
    """Whether a version is inside the folder of the first, as it can on disks only (see ``Home.table``)."""
    return os.path.isdir(os.path.join(home.nested_table("matches", f"{pattern}/v{number}"), "_delta_log"))


def _move_out(home: Home, pattern: str) -> bool:
    """Move versions out of the folder of the first."""
    inside = [number for number in later_versions(home, pattern) if _nested(home, pattern, number)]
    for number in inside:
        name = f"{pattern}/v{number}"
        nested, beside = home.nested_table("matches", name), f"{home.next_tables('matches')}/{name}"
        # This is the lock that older releases hold while they publish there.
        with file_lock(home, f"table-matches.{name}"):
            if os.path.isdir(beside):
                raise DivergedVersions.of(name, nested, beside)
            try:
                os.makedirs(os.path.dirname(beside), exist_ok=True)
                with around("place.move"):
                    os.rename(nested, beside)
            except OSError as error:
                # For example, the pattern's folder is a link to another disk.
                raise NotMoved.of(name, nested, beside, error) from None
    return bool(inside)


def _drop(path: str) -> None:
    """Remove a table whose rows are elsewhere."""
    files = storage_of(path)
    if files.on_disk:
        # After this one rename it is no longer a table, however far its removal gets.
        os.rename(path, path + _GONE)
        _remove_gone(os.path.dirname(path))
        return
    # The newest log entries go first: a killed attempt leaves an older version, which the next one removes.
    files.remove_all(f"{path}/_delta_log")
    files.remove_all(path)


def _remove_gone(folder: str) -> None:
    """Remove what is left of dropped versions."""
    files = storage_of(folder)
    for name in files.folders(folder):
        if name.endswith(_GONE):
            files.remove_all(f"{folder}/{name}")
    if os.path.isdir(folder) and not os.listdir(folder):
        os.rmdir(folder)
