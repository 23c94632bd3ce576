"""The change feed of a table: what was added, withdrawn and changed since a version or a time; no JVM.

Publishing writes differences only (``chainlake.lake.store``), so the feed holds exactly those: neither a recomputation
that changes nothing nor a compaction leaves a trace in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.errors import UsageError
from chainlake.lake.delta.kept import Commit, kept_commits
from chainlake.lake.delta.reader import open_table
from chainlake.lake.delta.tables import FEED
from chainlake.lake.errors import UnknownTable
from chainlake.lake.records.defined.registered import registered_table
from chainlake.lake.sql.scan import list_tables
from chainlake.paths import Home

if TYPE_CHECKING:
    from deltalake import DeltaTable

#: What Delta calls a change → what it is called here; rows as they were before a change are left out.
KINDS = {"insert": "added", "delete": "withdrawn", "update_postimage": "changed"}
#: Columns of the feed that come before the table's own.
HEAD = ("change", "version", "committed_at")


class FeedUnavailable(UsageError):
    """The changes asked for are not in the table's feed."""

    table: str

    @classmethod
    def no_time(cls, text: str) -> FeedUnavailable:
        """The text given as the moment to start from is not a time."""
        return cls(f"'{text}' is not a time", hint="Give a time such as 2025-10-02T06:00:00Z.")

    @classmethod
    def not_yet(cls, table: str, since: int, now: int) -> FeedUnavailable:
        """The version asked for is still to come."""
        return cls(f"{table} has no version {since} yet", hint=f"Its version is {now}.").holding(table=table)

    @classmethod
    def never(cls, table: str) -> FeedUnavailable:
        """The table keeps no change feed."""
        return cls(f"{table} keeps no change feed", hint="All tables except those of ops do.").holding(table=table)

    @classmethod
    def all_gone(cls, table: str, now: int) -> FeedUnavailable:
        """No commit of the feed is kept."""
        hint = f"Read the table; it is version {now}."
        return cls(f"the change feed of {table} is no longer kept", hint=hint).holding(table=table)

    @classmethod
    def partly_gone(cls, table: str, oldest: Commit, first: int, since: int | datetime, now: int) -> FeedUnavailable:
        """The feed is kept from version ``first`` on, as the oldest kept commit shows."""
        moment = oldest.at.isoformat(timespec="seconds").replace("+00:00", "Z")
        why = f"it got other columns at version {oldest.version}, and " if oldest.other_columns else ""
        hint = f"Use --since-version {first - 1}, or read the whole table; "
        hint += "an option of 'chainlake maintain' says how long it is kept."
        what = f"the change feed of {table} is kept from version {first} ({moment}) to {now}: "
        return cls(f"{what}{why}not all changes since {since} are kept", hint=hint).holding(table=table)


@dataclass(frozen=True)
class Feed:
    """The changes, oldest version first.

    Args:
        rows: ``change`` (added, withdrawn, changed), ``version`` and ``committed_at`` of its commit, then the table's
            columns; a changed row has its new values.
        version: the table's version now, to ask from next time.
        table: the table's id; a table made again under the same name has another id and its own versions.
    """

    rows: pa.Table
    version: int
    table: str


def changes(home: Home, name: str, since: int | datetime, *, before: bool = False) -> Feed:
    """Changes of a table after ``since``.

    Args:
        home: the installation.
        name: ``schema.name``; ``matches.<pattern>`` is the table that the pattern's name stands for now.
        since: a version, whose own changes are not included; or a moment: changes committed after it.
        before: also give rows of kind ``before``: what a changed row was.

    Raises:
        UsageError: no such table, a table without a feed, a version that does not exist yet, or changes that are no
            longer kept; the message says what is kept.
    """
    delta = _open(home, name)
    now, table = delta.version(), str(delta.metadata().id)
    if isinstance(since, int) and since > now:
        raise FeedUnavailable.not_yet(name, since, now)
    commits = kept_commits(delta)
    first = _first(name, commits, since, now)
    if first > now:
        return Feed(_head(pa.schema(delta.schema().to_arrow())).empty_table(), now, table)
    rows = pa.table(delta.load_cdf(starting_version=first, ending_version=now))
    return Feed(_arranged(rows, delta, KINDS | {"update_preimage": "before"} if before else KINDS), now, table)


def feed_now(home: Home, name: str) -> tuple[str, int]:
    """Id and version of a table that keeps a feed; arguments and errors are those of :func:`changes`."""
    delta = _open(home, name)
    return str(delta.metadata().id), delta.version()


def _open(home: Home, name: str) -> DeltaTable:
    from deltalake.exceptions import TableNotFoundError

    schema, _, table = name.partition(".")
    if not table:
        raise UnknownTable.no_schema(name)
    folder = registered_table(home, table) if schema == "matches" and "/" not in table else table
    try:
        delta = open_table(home, schema, folder)
    except TableNotFoundError:
        raise UnknownTable.of([name], [f"{schema}.{one}" for one in list_tables(home, schema)]) from None
    if delta.metadata().configuration.get(FEED) != "true":
        raise FeedUnavailable.never(name)
    return delta


def _first(name: str, commits: list[Commit], since: int | datetime, now: int) -> int:
    """The first version to read.

    Raises:
        UsageError: it is no longer kept.
    """
    oldest = commits[0] if commits else None
    if oldest is None:
        if isinstance(since, int) and since == now:
            return now + 1
        raise FeedUnavailable.all_gone(name, now)
    first = oldest.version + 1 if oldest.other_columns else oldest.version
    if isinstance(since, int):
        wanted = since + 1
    else:
        later = [commit.version for commit in commits if commit.at > since]
        wanted = later[0] if later else now + 1
        if oldest.at > since and first > 0:
            # What was committed between that moment and the oldest commit is not known.
            wanted = first - 1
    if wanted >= first:
        return wanted
    raise FeedUnavailable.partly_gone(name, oldest, first, since, now)


def _head(schema: pa.Schema) -> pa.Schema:
    stamp = pa.timestamp("us", tz="UTC")
    return pa.schema([("change", pa.string()), ("version", pa.int64()), ("committed_at", stamp), *schema])


def _arranged(rows: pa.Table, delta: DeltaTable, kinds: dict[str, str]) -> pa.Table:
    schema = _head(pa.schema(delta.schema().to_arrow()))
    own = schema.names[len(HEAD) :]
    # Arrow cannot yet sort or filter the string views in which the feed comes.
    named = rows.select(["_change_type", "_commit_version", "_commit_timestamp", *own]).rename_columns(schema.names)
    stamp = pc.cast(named["committed_at"], pa.timestamp("us")).cast(schema.field("committed_at").type)
    plain = named.set_column(2, "committed_at", stamp).cast(schema)
    plain = plain.filter(pc.is_in(plain["change"], value_set=pa.array(kinds)))
    words = [kinds[kind] for kind in plain["change"].to_pylist()]
    plain = plain.set_column(0, "change", pa.array(words, pa.string()))
    return plain.sort_by([("version", "ascending"), ("change", "ascending"), (own[0], "ascending")])


def parse_moment(text: str) -> datetime:
    """Parse a moment in ISO form: a date means its midnight, no zone means UTC.

    Raises:
        UsageError: for anything else.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise FeedUnavailable.no_time(text) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
