"""Locks in a PostgreSQL database: held by a connection, and free the moment it ends."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from chainlake.errors import InfrastructureError
from chainlake.lake.errors import LockLost
from chainlake.lake.leases.machine import UNKNOWN, guarded
from chainlake.paths import Home

#: With these, either side ends a connection within half a minute after the other has vanished.
_ALIVE = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
_SERVER = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c idle_session_timeout=0"
_CONNECT_S = 10


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
        return bool(self._ask("SELECT pg_try_advisory_lock(%s, %s)", self._keys))

    def holder(self) -> str:
        """A description of who holds the lock."""
        found = self._ask(
            "SELECT replace(a.application_name, 'chainlake ', 'process ') || ', since ' "
            "|| to_char(a.backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC' FROM pg_locks l "
            "JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.granted "
            "AND l.classid::bigint = %s AND l.objid::bigint = %s AND l.objsubid = 2",
            tuple(key % (1 << 32) for key in self._keys),
        )
        return str(found).replace("@", " on ", 1) if found else UNKNOWN

    def held(self) -> bool:
        """Whether anybody holds the lock."""
        return self.holder() != UNKNOWN

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
                cursor.execute(sql, values)
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
