"""The Delta log of a table as files: which commits are ours, and what in the log is damaged.

Every commit of ours to a data table carries a turn (``chainlake.lake.store``) or a mark; a commit with neither was made
by someone else. The log is read file by file here, because a table reader gives up at the first entry that it cannot
read, and skips an empty one as if that commit had never been made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from chainlake.paths import Home
from chainlake.storage.errors import StoreFailed
from chainlake.storage.resolve import storage_of

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from pyarrow.fs import FileSystem

#: The first word of the user metadata of our commits without a turn.
_OURS = "chainlake"
#: What ``chainlake check --repair`` writes into the log of a table whose foreign commits have been looked through.
_LOOKED_THROUGH = "looked through"
#: Older releases removed unused raw loads without a mark; nothing else deletes in these words.
_LOADS_REMOVED = re.compile(r"^load_id IN \(")
_COMMIT = re.compile(r"^(\d{20})\.json$")
_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint.*\.parquet$")
HINT = "_last_checkpoint"


def marked(what: str, retries: int | None = None) -> CommitProperties:
    """Properties of a commit of ours that needs no turn; ``what`` is the verb or run that makes it.

    Args:
        what: a string that is kept in the log.
        retries: how often the commit is tried again, as a later version, if another writer came first; delta-rs decides
            if not given.
    """
    from deltalake import CommitProperties

    return CommitProperties(custom_metadata={"userMetadata": f"{_OURS} {what}"}, max_commit_retries=retries)


def require_taken(at: DeltaTable, base: int) -> None:
    """Check that a commit was refused because another one came first, and not by the store for another reason.

    delta-rs has one error for both: a bucket whose rules forbid a write answers "conflict" as well.

    Args:
        at: the table, which is at its newest version afterwards.
        base: the version that the commit was to follow.

    Raises:
        StoreFailed: the version after ``base`` does not exist.
    """
    at.update_incremental()
    if at.version() <= base:
        raise StoreFailed.no_commit(at.table_uri, base + 1)


def signature() -> CommitProperties:
    """Properties of the commit that says that what others committed before has been looked through."""
    return marked(_LOOKED_THROUGH, 0)


@dataclass(frozen=True)
class Commit:
    """A commit, as its log entry describes it.

    Args:
        version: version of the table.
        operation: such as ``WRITE`` or ``DELETE``.
        at: when it was made.
        marked: whether it carries a turn or a mark of ours.
        signed: whether it says that what others committed before has been looked through.
        appends: whether it adds rows and removes none.
        changes_rows: whether rows were added or removed, not only moved between files.
        files: paths of the data files it added with changed rows.
    """

    version: int
    operation: str
    at: datetime
    marked: bool
    signed: bool
    appends: bool
    changes_rows: bool
    files: tuple[str, ...]

    def __str__(self) -> str:
        return f"version {self.version} ({self.operation}, {self.at:%Y-%m-%dT%H:%M:%SZ})"


@dataclass(frozen=True)
class Foreign:
    """What in a log is not known to be ours.

    Args:
        commits: commits of others, oldest first.
        unreadable: version → why its entry cannot be read, so that it may be anybody's.
    """

    commits: tuple[Commit, ...]
    unreadable: Mapping[int, str]


@dataclass(frozen=True)
class Problem:
    """A file of the log that is not as it must be: its path relative to the table, and what is wrong with it."""

    file: str
    what: str
    version: int | None = None


@dataclass(frozen=True)
class _Shape:
    """Columns of a table with their types, and those it is partitioned by."""

    columns: dict[str, str]
    partitions: tuple[str, ...]

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> _Shape:
        """From a ``metaData`` action of a log."""
        fields = json.loads(given.get("schemaString") or "{}").get("fields", [])
        columns = {field["name"]: json.dumps(_plain(field["type"]), sort_keys=True) for field in fields}
        return cls(columns, tuple(given.get("partitionColumns") or ()))


def _plain(kind: Any) -> Any:
    """A type of a schema without what each writer spells in its own way: comments and nullability."""
    if isinstance(kind, list):
        return [_plain(one) for one in kind]
    if isinstance(kind, dict):
        return {name: _plain(one) for name, one in kind.items() if name != "metadata" and "ull" not in name}
    return kind


class TableLog:
    """The log of one table, whether it can be read as a table or not.

    Args:
        home: the installation.
        schema: schema of the table.
        name: its name under the schema.
    """

    def __init__(self, home: Home, schema: str, name: str) -> None:
        from pyarrow.fs import LocalFileSystem

        self.home, self.schema, self.name = home, schema, name
        self._storage, self._uri = storage_of(home.table(schema, name)), home.table(schema, name)
        files, folder = self._storage.arrow(self._storage.absolute(self._uri))
        self.files: FileSystem = files or LocalFileSystem()
        self.folder = folder

    @cached_property
    def _names(self) -> list[str]:
        """Names of the files in the log's folder."""
        return self._storage.names(f"{self._uri}/_delta_log")

    @property
    def exists(self) -> bool:
        """Whether there is a log at all."""
        return bool(self.versions or self.checkpoints)

    @cached_property
    def versions(self) -> list[int]:
        """Versions that have a log entry, ascending."""
        return sorted(int(found[1]) for name in self._names if (found := _COMMIT.match(name)))

    @cached_property
    def checkpoints(self) -> dict[int, list[str]]:
        """Version → the files of its checkpoint."""
        found: dict[int, list[str]] = {}
        for name in self._names:
            if match := _CHECKPOINT.match(name):
                found.setdefault(int(match[1]), []).append(name)
        return found

    @property
    def last(self) -> int | None:
        """The table's version, going by the file names in its log."""
        return max([*self.versions, *self.checkpoints], default=None)

    @property
    def absent(self) -> list[int]:
        """Versions whose entry is missing although later versions depend on it."""
        return self._absent(self.checkpoints)

    def _absent(self, checkpoints: Collection[int]) -> list[int]:
        begun = max(checkpoints, default=-1)
        there = set(self.versions)
        return [version for version in range(begun + 1, max(there, default=-1) + 1) if version not in there]

    def actions(self, version: int) -> list[dict[str, Any]]:
        """What a commit did.

        Raises:
            ValueError: the entry is empty or not a list of JSON objects.
            FileNotFoundError: it is not there.
        """
        with self.files.open_input_stream(f"{self.folder}/_delta_log/{version:020}.json") as stream:
            lines = [json.loads(line) for line in stream.read().decode().splitlines() if line.strip()]
        if not lines:
            raise ValueError("it is empty")
        if not all(isinstance(line, dict) for line in lines):
            raise ValueError("it holds something other than actions")
        return lines

    def commit(self, version: int) -> Commit:
        """A commit; raises what :meth:`actions` raises."""
        actions = self.actions(version)
        info: dict[str, Any] = next((one["commitInfo"] for one in actions if "commitInfo" in one), {})
        moved = [(kind, one[kind]) for one in actions for kind in ("add", "remove") if kind in one]
        changed = [(kind, file) for kind, file in moved if file.get("dataChange", True)]
        turns = {one["txn"].get("appId") for one in actions if "txn" in one}
        mark = str(info.get("userMetadata") or "")
        predicate = str((info.get("operationParameters") or {}).get("predicate") or "")
        own = bool(turns & self._purposes) or mark.split(" ")[0] == _OURS
        own = own or (self.schema == "raw" and bool(_LOADS_REMOVED.match(predicate)))
        return Commit(
            version=version,
            operation=str(info.get("operation") or "unknown operation"),
            at=datetime.fromtimestamp((info.get("timestamp") or 0) / 1000, UTC),
            marked=own,
            signed=mark == f"{_OURS} {_LOOKED_THROUGH}",
            appends=bool(changed) and all(kind == "add" for kind, _ in changed),
            changes_rows=bool(changed),
            files=tuple(file["path"] for kind, file in changed if kind == "add"),
        )

    @property
    def _purposes(self) -> set[str]:
        """The turns that our writers of this table take."""
        return {f"table-{self.schema}.{self.name}", f"ingest-{self.name}"}

    def foreign(self, after: int = -1) -> Foreign:
        """Commits of others that nobody has looked through, and entries whose author cannot be determined.

        Args:
            after: look only at later versions.
        """
        found: list[Commit] = []
        unreadable: dict[int, str] = {}
        any_mark = False
        for version in self.versions:
            if version <= after:
                continue
            try:
                commit = self.commit(version)
            except (ValueError, OSError) as error:
                unreadable[version] = str(error)
                continue
            if commit.signed:
                found.clear()
            # In older releases, appends to ops carried no mark.
            unmarked_log = self.schema == "ops" and commit.appends and not any_mark
            any_mark = any_mark or commit.marked
            if not commit.marked and not unmarked_log:
                found.append(commit)
        return Foreign(tuple(found), unreadable)

    def reshaped(self) -> Commit | None:
        """The commit with which someone else gave the table columns, types or partitions that are not ours."""
        ours: _Shape | None = None
        theirs: tuple[_Shape, Commit] | None = None
        for version in self.versions:
            try:
                actions, commit = self.actions(version), self.commit(version)
            except (ValueError, OSError):
                # This is damage, which ``problems`` reports.
                continue
            for given in (one["metaData"] for one in actions if "metaData" in one):
                shape = _Shape.of(given)
                if commit.marked or not version:
                    ours, theirs = shape, None
                else:
                    theirs = shape, commit
        if ours is None or theirs is None or theirs[0] == ours:
            return None
        return theirs[1]

    def problems(self) -> Iterator[Problem]:
        """Files of the log that are damaged or missing; the hint and the checkpoints first."""
        bad = set()
        for version, names in self.checkpoints.items():
            for name in names:
                if why := self._unreadable_parquet(name):
                    bad.add(version)
                    yield Problem(f"_delta_log/{name}", f"the checkpoint cannot be read: {why}", version)
        if why := self._hint_problem(bad):
            yield Problem(f"_delta_log/{HINT}", why)
        for version in self.versions:
            try:
                self.actions(version)
            except (ValueError, OSError) as error:
                yield Problem(f"_delta_log/{version:020}.json", f"the log entry cannot be read: {error}", version)
        for version in self._absent(set(self.checkpoints) - bad):
            yield Problem(f"_delta_log/{version:020}.json", "the log entry is missing", version)

    def _hint_problem(self, bad: set[int]) -> str | None:
        if HINT not in self._names:
            return None
        try:
            with self.files.open_input_stream(f"{self.folder}/_delta_log/{HINT}") as stream:
                version = json.loads(stream.read().decode())["version"]
        except (ValueError, KeyError, TypeError, OSError) as error:
            return f"it cannot be read: {error}"
        if version not in self.checkpoints:
            return f"it names a checkpoint of version {version}, which is missing"
        return f"it names the damaged checkpoint of version {version}" if version in bad else None

    def readable_checkpoint(self, version: int) -> bool:
        """Whether a checkpoint can be read in all its files."""
        return all(self._unreadable_parquet(name) is None for name in self.checkpoints[version])

    def _unreadable_parquet(self, name: str) -> str | None:
        import pyarrow.parquet as pq

        try:
            with self.files.open_input_file(f"{self.folder}/_delta_log/{name}") as stream:
                pq.ParquetFile(stream).read()
        except (pa.ArrowException, OSError) as error:
            return first_line(error)
        return None


def first_line(error: BaseException) -> str:
    """What an error says, in one line, without the stack that a native library adds."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:300]
