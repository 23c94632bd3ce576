"""Locks in a PostgreSQL database: held by a connection, and free the moment it ends."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from chainlake.errors import InfrastructureError
from chainlake.lake.errors import LockLost
from chainlake.lake.leases.machine import UNKNOWN, guarded, holder_text, own_holder
from chainlake.paths import Home

#: With these, either side ends a connection within half a minute after the other has vanished.
_ALIVE = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
_SERVER = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c idle_session_timeout=0"
_CONNECT_S = 10
#: The row of a lock that is held, for its keys as the server shows them.
_HELD = "l.locktype = 'advisory' AND l.granted AND l.classid::bigint = %s AND l.objid::bigint = %s AND l.objsubid = 2"
#: Stands between a statement and the process that makes it.
_SIGNED = " -- "


class NoDatabase(InfrastructureError):
    """The database for the locks cannot be used."""

    @classmethod
    def of(cls, error: Exception) -> NoDatabase:
        """For the driver's message about a well-formed URL, which holds no password."""
        text = " ".join(str(error).split())
        return cls(f"the database that CHAINLAKE_LOCKS names cannot be used: {text}", hint="Start it, or fix the URL.")

    @classmethod
    def unreadable(cls) -> NoDatabase:
        """The URL is malformed; neither it nor the driver's message is shown, since they may hold a password."""
        hint = "Write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, and in a password %40 for @, %2F for /, %25 for %."
        return cls("CHAINLAKE_LOCKS is not the URL of a database", hint=hint)


class Session:
    """A connection that holds one lock, or inspects it.

    Args:
        url: ``postgresql://…``.
        home: the installation; each lake has its own locks.
        purpose: the lock's name.

    Raises:
        NoDatabase: the database cannot be reached.
    """

    def __init__(self, url: str, home: Home, purpose: str) -> None:
        import psycopg2

        _require_readable(url)
        self.purpose = purpose
        digest = hashlib.sha256(f"{home.lake}\0{purpose}".encode()).digest()
        self._keys = int.from_bytes(digest[:4], "big", signed=True), int.from_bytes(digest[4:8], "big", signed=True)
        self._seen = tuple(key % (1 << 32) for key in self._keys)
        self._signature = ""
        name = f"chainlake {os.getpid()}@{os.uname().nodename}"
        try:
            self._connection = psycopg2.connect(
                url, connect_timeout=_CONNECT_S, application_name=name[:63], options=_SERVER, **_ALIVE
            )
        except psycopg2.Error as error:
            raise NoDatabase.of(error) from None
        self._connection.autocommit = True

    def take(self) -> bool:
        """Take the lock if it is free; return whether it was."""
        # A % would be taken for a place of a value.
        self._signature = json.dumps(own_holder(self.purpose)).replace("%", "\\u0025")
        return bool(self._ask("SELECT pg_try_advisory_lock(%s, %s)", self._keys))

    def holder(self) -> str:
        """A description of who holds the lock, from the last statement of its connection."""
        said = self._ask(
            f"SELECT a.query FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE {_HELD}", self._seen
        )
        try:
            return holder_text(json.loads(str(said).partition(_SIGNED)[2]))
        except ValueError:
            return UNKNOWN

    def held(self) -> bool:
        """Whether anybody holds the lock."""
        return self._ask(f"SELECT true FROM pg_locks l WHERE {_HELD}", self._seen) is not None

    def require(self) -> None:
        """Make sure that the connection, and with it the lock, is still there.

        Raises:
            LockLost: it is not.
        """
        import psycopg2

        try:
            self._ask("SELECT 1", ())
        except (NoDatabase, psycopg2.Error):
            raise LockLost.of(guarded(self.purpose), "a process that cannot be identified from here") from None

    def close(self) -> None:
        """End the connection, which frees the lock."""
        self._connection.close()

    def _ask(self, sql: str, values: tuple[Any, ...]) -> Any:
        import psycopg2

        try:
            with self._connection.cursor() as cursor:
                # Each statement names the process, since others see the last one of a connection.
                cursor.execute(f"{sql}{_SIGNED}{self._signature}", values)
                row = cursor.fetchone()
        except psycopg2.Error as error:
            raise NoDatabase.of(error) from None
        return None if row is None else row[0]


def _require_readable(url: str) -> None:
    """Make sure that a URL has the parts that it seems to have: an @ or a / in a password would cut it in two.

    Raises:
        NoDatabase: it does not.
    """
    import psycopg2
    from psycopg2.extensions import parse_dsn

    try:
        parts = parse_dsn(url)
    except psycopg2.ProgrammingError:
        raise NoDatabase.unreadable() from None
    port = parts.get("port", "")
    if "@" in parts.get("host", "") + parts.get("dbname", "") or not (port.isdecimal() or not port):
        raise NoDatabase.unreadable()
