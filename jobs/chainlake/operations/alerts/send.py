"""Tell what changed in a match table since it was last told.

The table's change feed is written by the commit that publishes, so it holds each match that was added or withdrawn
once, whatever died in between: nothing has to be noted beside it. A message that was taken is noted before the next one
is sent; a sender that dies in between sends that one again, under the same id.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from chainlake.catalog.patterns import CompiledPattern, load_patterns
from chainlake.cep.language.declared.alerting import Alerts
from chainlake.definitions.errors import UnknownDefinition
from chainlake.definitions.source import load_sources
from chainlake.lake.commits.changes import FeedUnavailable, changes, feed_now
from chainlake.lake.errors import UnknownTable
from chainlake.lake.locks import file_lock
from chainlake.operations.alerts.cursor import Cursor, read_cursor, write_cursor
from chainlake.operations.alerts.webhook import Trying, address_of, post
from chainlake.paths import Home

#: Columns of the feed that are not the match's.
_OF_THE_FEED = ("change", "version", "committed_at")


@dataclass(frozen=True)
class Sending:
    """How alerts are sent.

    Args:
        trying: how often a message is tried.
        since: begin after this version instead of where the last call ended.
        from_now: begin with what is published from now on.
        now: the clock.
    """

    trying: Trying = field(default_factory=Trying)
    since: int | None = None
    from_now: bool = False
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@dataclass(frozen=True)
class Told:
    """What was sent of a pattern.

    Args:
        pattern: its name.
        sent: messages that were taken.
        version: of its table, up to which all is told; ``None`` while it is muted.
        why: what else is to say: that it is muted, or begins now; empty if nothing.
    """

    pattern: str
    sent: int
    version: int | None
    why: str = ""


class FeedCut(FeedUnavailable):
    """The change feed does not reach back to what was told last."""

    @classmethod
    def of(cls, pattern: str, error: FeedUnavailable) -> FeedCut:
        """For a pattern, and what is said of the feed."""
        if isinstance(error, cls):
            return error
        hint = f"Run 'alerts send {pattern} --from-now': what was published in between is not told."
        return cls(f"alerts of {pattern} cannot go on: {error.what}", hint=hint)

    @classmethod
    def another(cls, pattern: str) -> FeedCut:
        """The pattern's name stands for another table than when it was told last."""
        hint = (
            f"Run 'alerts send {pattern} --from-version 0' to tell all that the table holds, or '--from-now' to leave "
            "out what was published in between."
        )
        return cls(f"alerts of {pattern} cannot go on: its matches are in another table since", hint=hint)


def alerting(home: Home, names: Sequence[str] = ()) -> list[CompiledPattern]:
    """The patterns whose front matter says ``alerts``.

    Raises:
        UsageError: one of ``names`` is no pattern, or has none.
        DefinitionError: the file of one of ``names`` is wrong.
    """
    patterns, broken = load_patterns(home, load_sources(home))
    for one in broken:
        if one.name in names:
            raise one.error
    having = {one.pattern.name: one for one in patterns if one.pattern.front.alerts is not None}
    if unknown := [name for name in names if name not in having]:
        raise UnknownDefinition.of_kind("pattern with alerts", unknown, sorted(having))
    return [one for name, one in having.items() if not names or name in names]


def send(home: Home, item: CompiledPattern, sending: Sending) -> Told:
    """Tell what changed in the matches of a pattern since the last call.

    Args:
        home: the installation.
        item: the pattern, which has alerts.
        sending: how.

    Raises:
        InfrastructureError: the webhook does not take a message; those before it are noted as sent.
        UsageError: the environment has no address, or the feed does not reach back far enough.
    """
    pattern = item.pattern
    alerts = pattern.front.alerts
    assert alerts is not None
    with file_lock(home, f"alerts-{pattern.name}"):
        cursor = read_cursor(home, pattern.name) if sending.since is None else Cursor(sending.since)
        if cursor is None or sending.from_now:
            table, version = _now(home, pattern.name)
            write_cursor(home, pattern.name, Cursor(version, table=table))
            return Told(pattern.name, 0, version, "what is published from now on is told")
        address = address_of(pattern.name, alerts)
        try:
            _require_same(home, pattern.name, cursor)
            feed = changes(home, f"matches.{pattern.name}", cursor.version)
        except UnknownTable:
            return Told(pattern.name, 0, cursor.version)
        except FeedUnavailable as error:
            raise FeedCut.of(pattern.name, error) from error
        if sending.since is not None:
            # Kept before anything can stop this call, for the next one goes on from there.
            write_cursor(home, pattern.name, Cursor(cursor.version, table=feed.table))
        zone = ZoneInfo(load_sources(home)[item.definition.source].zone)
        if alerts.muted(sending.now().astimezone(zone).time()):
            return Told(pattern.name, 0, None, f"muted now, by the clock of {zone}; it is told later")
        sent = 0
        messages = list(_messages(item, alerts, feed.rows.to_pylist()))
        # The feed of a version never changes, and neither does its order.
        ids = [message["id"] for message in messages]
        begin = ids.index(cursor.last) + 1 if cursor.last in ids else 0
        for message in messages[begin:]:
            post(pattern.name, address, message, sending.trying)
            write_cursor(home, pattern.name, Cursor(cursor.version, message["id"], feed.table))
            sent += 1
        write_cursor(home, pattern.name, Cursor(feed.version, table=feed.table))
        return Told(pattern.name, sent, feed.version)


def _require_same(home: Home, pattern: str, cursor: Cursor) -> None:
    """See to it that a cursor's version is one of the table that the pattern's name stands for.

    Raises:
        FeedCut: it is not.
    """
    if cursor.table is not None and feed_now(home, f"matches.{pattern}")[0] != cursor.table:
        raise FeedCut.another(pattern)


def _now(home: Home, pattern: str) -> tuple[str | None, int]:
    """The id and the version of a pattern's table now; version 0, before the first match, if there is no table yet."""
    try:
        return feed_now(home, f"matches.{pattern}")
    except UnknownTable:
        return None, 0


def _messages(item: CompiledPattern, alerts: Alerts, rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        if row["change"] == "withdrawn" and not alerts.withdrawn:
            continue
        yield {
            # A match can be withdrawn and found again: these are three messages, so the version is part of the id.
            "id": f"{row['match_id']}:{row['change']}:{row['version']}",
            "kind": row["change"],
            "pattern": item.pattern.name,
            "description": item.pattern.description,
            "source": item.definition.source,
            "published": _plain(row["committed_at"]),
            "match": {name: _plain(value) for name, value in row.items() if name not in _OF_THE_FEED},
        }


def _plain(value: Any) -> Any:
    """A value as JSON knows it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no such numbers.
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
