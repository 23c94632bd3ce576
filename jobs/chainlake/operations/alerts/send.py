"""Sends what has changed in a pattern's matches, or in a model's findings, since the last time.

The table's change feed is written by the commit that publishes, so it holds each added or withdrawn row exactly once,
whatever process died in between: nothing else has to be recorded. An accepted message is recorded before the next one
is sent; if the sender dies before recording it, the message is sent again with the same id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from zoneinfo import ZoneInfo

from chainlake.catalog.installed import Installed
from chainlake.definitions.errors import UnknownDefinition
from chainlake.definitions.source import load_sources
from chainlake.lake.commits.changes import FeedUnavailable, changes, feed_now
from chainlake.lake.errors import UnknownTable
from chainlake.lake.locks import file_lock, require_locks
from chainlake.operations.alerts.cursor import Cursor, read_cursor, write_cursor
from chainlake.operations.alerts.messages import messages
from chainlake.operations.alerts.outbox import Outbox, of_model, of_pattern
from chainlake.operations.alerts.webhook import Trying, address_of, post
from chainlake.paths import Home


@dataclass(frozen=True)
class Sending:
    """How alerts are sent.

    Args:
        trying: how often, and for how long, a message is tried.
        since: begin after this version, not where the last call ended.
        from_now: send only what is published from now on.
        now: gives the current time.
    """

    trying: Trying = field(default_factory=Trying)
    since: int | None = None
    from_now: bool = False
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@dataclass(frozen=True)
class SendResult:
    """What was sent for a definition.

    Args:
        name: its name.
        sent: number of messages accepted.
        version: version of its table up to which everything has been sent; ``None`` while it is muted.
        why: a remark: that it is muted, or begins now; empty if there is none.
    """

    name: str
    sent: int
    version: int | None
    why: str = ""


class FeedCut(FeedUnavailable):
    """The change feed does not reach back to what was sent last."""

    @classmethod
    def of(cls, name: str, error: FeedUnavailable) -> FeedCut:
        """For a definition, and the error that the feed gave."""
        if isinstance(error, cls):
            return error
        hint = f"Run 'alerts send {name} --from-now': what was published in between is not sent."
        return cls(f"alerts of {name} cannot continue: {error.what}", hint=hint)

    @classmethod
    def another(cls, name: str) -> FeedCut:
        """The definition's name now stands for another table than when alerts were last sent."""
        hint = (
            f"Run 'alerts send {name} --from-version 0' to send all that the table holds, or '--from-now' to leave "
            "out what was published in between."
        )
        return cls(f"alerts of {name} cannot continue: its rows have moved to another table", hint=hint)


def alerting(home: Home, names: Sequence[str] = ()) -> list[Outbox]:
    """The patterns and models that have ``alerts``.

    Args:
        home: the installation.
        names: only the definitions with these names, as ``model/NAME`` where a pattern has the same one; all if empty.

    Raises:
        UsageError: one of ``names`` is not a pattern or model, or has no alerts.
        DefinitionError: the file of one of ``names`` is wrong.
    """
    installed = Installed.load(home, load_sources(home))
    for one in chain.from_iterable(installed.broken.values()):
        if one.name in names:
            raise one.error
    boxes = [*map(of_pattern, installed.patterns), *map(of_model, installed.models)]
    having = [box for box in boxes if box is not None]
    known = {name for box in having for name in (box.name, box.full_name)}
    if unknown := [name for name in names if name not in known]:
        raise UnknownDefinition.of_kind("pattern or model with alerts", unknown, sorted(box.name for box in having))
    return [box for box in having if not names or box.name in names or box.full_name in names]


def send(home: Home, box: Outbox, sending: Sending) -> SendResult:
    """Send what has changed in the rows of a definition since the last call.

    Args:
        home: the installation.
        box: the definition's outbox.
        sending: how to send.

    Raises:
        InfrastructureError: the webhook does not accept a message; those before it are recorded as sent.
        LockLost: another machine has taken over.
        UsageError: the environment has no address, or the feed does not reach back far enough.
    """
    name = box.name
    # Also on the first call, which sends nothing: that is when someone checks whether alerts work.
    address = address_of(name, box.alerts)
    with file_lock(home, f"alerts-{box.full_name}"):
        cursor = read_cursor(home, box.full_name) if sending.since is None else Cursor(sending.since)
        if cursor is None or sending.from_now:
            table, version = _now(home, box)
            write_cursor(home, box.full_name, Cursor(version, table=table))
            return SendResult(name, 0, version, "what is published from now on is sent")
        try:
            _require_same(home, box, cursor)
            feed = changes(home, box.table, cursor.version, before=True)
        except UnknownTable:
            return SendResult(name, 0, cursor.version)
        except FeedUnavailable as error:
            raise FeedCut.of(name, error) from error
        if sending.since is not None:
            # Recorded before anything can stop this call, since the next call continues from there.
            write_cursor(home, box.full_name, Cursor(cursor.version, table=feed.table))
        zone = ZoneInfo(load_sources(home)[box.source].zone)
        if box.alerts.muted(sending.now().astimezone(zone).time()):
            return SendResult(name, 0, None, f"muted now, by the clock of {zone}; it is sent later")
        sent = 0
        listed = list(messages(box, feed.rows.to_pylist()))
        # The feed of a version never changes, and neither does its order.
        ids = [message["id"] for message in listed]
        begin = ids.index(cursor.last) + 1 if cursor.last in ids else 0
        for message in listed[begin:]:
            require_locks()
            post(name, address, message, sending.trying)
            write_cursor(home, box.full_name, Cursor(cursor.version, message["id"], feed.table))
            sent += 1
        write_cursor(home, box.full_name, Cursor(feed.version, table=feed.table))
        return SendResult(name, sent, feed.version)


def _require_same(home: Home, box: Outbox, cursor: Cursor) -> None:
    """Make sure that a cursor's version belongs to the table that the definition's name stands for.

    Raises:
        FeedCut: it does not.
    """
    if cursor.table is not None and feed_now(home, box.table)[0] != cursor.table:
        raise FeedCut.another(box.name)


def _now(home: Home, box: Outbox) -> tuple[str | None, int]:
    """The current id and version of the definition's table; version 0, before the first row, if there is none yet."""
    try:
        return feed_now(home, box.table)
    except UnknownTable:
        return None, 0
