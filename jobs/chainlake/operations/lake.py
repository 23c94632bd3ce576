"""A lake for use from Python: its tables by SQL, the state of its days, and what has changed; no JVM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from chainlake.lake.commits.changes import Feed, changes
from chainlake.lake.sql.query import SqlConnection
from chainlake.operations.open_episodes import open_views
from chainlake.operations.ranked_scopes import scope_views
from chainlake.operations.status import status_table
from chainlake.paths import Home


@dataclass(frozen=True)
class Lake:
    """The tables of one installation, for reading.

    Example:
        >>> import chainlake as cl
        >>> lake = cl.Lake.open("folder/of/an/installation")
        >>> lake.sql("SELECT sqrt(16) AS root").to_pylist()
        [{'root': 4.0}]
        >>> lake.tables()  # nothing has been ingested there
        []

    Args:
        home: the installation.
    """

    home: Home

    @classmethod
    def open(cls, root: str | Path | None = None, *, config: str | Path | None = None) -> Lake:
        """The lake of an installation.

        Args:
            root: its folder; by default ``CHAINLAKE_HOME``, or ``.chainlake`` in the project. With a folder, the tables
                are those in it, whatever ``CHAINLAKE_LAKE`` says.
            config: the folder of its definitions; by default ``CHAINLAKE_CONFIG``, or the shipped definitions.

        Raises:
            InfrastructureError: the folder cannot hold an installation.
        """
        home = Home.from_env()
        if root is not None:
            home = replace(home, root=Path(root), lake=str(Path(root) / "lake"))
        return cls(home if config is None else replace(home, config=Path(config)))

    def sql(self, statement: str, *, safe: bool = False) -> pa.Table:
        """The rows that one query gives, in DuckDB's SQL.

        Args:
            statement: ``SELECT … FROM matches.<pattern>``, or anything else that ``chainlake sql`` accepts.
            safe: refuse statements that read files or settings, for statements that others wrote. Unlike the
                command's ``--safe``, it does not confine this process.

        Raises:
            UsageError: the statement does not read, or a name does not exist; the message says what exists.
        """
        return self._queries(safe=safe).table(statement)

    def tables(self) -> list[str]:
        """Everything that can be queried, as ``schema.name``."""
        return self._queries(safe=False).tables()

    def status(self) -> pa.Table:
        """One row per definition and day: ``done``, ``missing``, ``stale``, … as ``chainlake status`` shows it."""
        return status_table(self.home)

    def changes(self, table: str, since: int | datetime) -> Feed:
        """What was added, changed and withdrawn in a table.

        Args:
            table: ``schema.name``, such as ``matches.<pattern>``.
            since: a version, whose own changes are not included, or a time, for changes committed after it.

        Returns:
            the changes, and the version to ask from next time.

        Raises:
            UsageError: there is no such table, or ``since`` is older than what is kept; the message says what is kept.
        """
        return changes(self.home, table, since)

    def _queries(self, *, safe: bool) -> SqlConnection:
        views = {("ops", "status"): self.status, **open_views(self.home), **scope_views(self.home)}
        return SqlConnection(self.home, views, safe=safe)
