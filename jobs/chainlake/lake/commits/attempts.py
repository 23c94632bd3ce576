"""What earlier attempts to publish some days have recorded: whether one was interrupted, and which tables they used."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from chainlake.lake.records import ops
from chainlake.lake.records.defined.definitions import Definition
from chainlake.paths import Home


@dataclass(frozen=True)
class Attempts:
    """The attempts for some definitions and days, from the whole log of ``ops.intervals``.

    The current row of a day does not tell: a later attempt that failed may have put ``failed`` over it, and the
    definition may have moved to another table and back while the first attempt's commit is still on its way.

    Args:
        rows: definition, day, table_name, status and seq of the rows ``publishing`` and ``done``.
    """

    rows: Sequence[dict[str, Any]]

    @classmethod
    def of(cls, home: Home, definitions: Iterable[Definition], days: Collection[date]) -> Attempts:
        """Read them.

        Args:
            home: the installation.
            definitions: the definitions.
            days: the days, at least one.
        """
        names = [definition.name for definition in definitions]
        log = ops.current_table(
            home,
            "intervals",
            columns=["definition", "day", "table_name", "status", "seq"],
            filters=[("definition", "in", names), ("day", ">=", min(days)), ("day", "<=", max(days))],
            as_log=True,
        )
        return cls([row for row in log.to_pylist() if row["status"] in ("publishing", "done")])

    def interrupted(self, definitions: Iterable[Definition], days: Iterable[date]) -> bool:
        """Whether one of them recorded ``publishing`` for one of the days, and none has finished since.

        A pattern's attempt concerns one table. A model's commits to every table that the model has ever used, so
        whichever finished last has also settled what those before it left in others.
        """
        wanted, tables = set(days), {one.name: None if one.is_model else one.table_name for one in definitions}
        begun: dict[tuple[str, str, date], int] = {}
        for row in self.rows:
            if row["definition"] in tables and tables[row["definition"]] in (None, row["table_name"]):
                key = (row["status"], row["definition"], row["day"])
                begun[key] = max(row["seq"], begun.get(key, 0))
        return any(
            seq > begun.get(("done", name, day), 0)
            for (status, name, day), seq in begun.items()
            if status == "publishing" and day in wanted
        )

    def elsewhere(self, definitions: Iterable[Definition]) -> dict[str, set[str]]:
        """Tables other than their own that definitions were published to, each with the names of these definitions."""
        own = {one.name: one.table_name for one in definitions}
        found: dict[str, set[str]] = {}
        for row in self.rows:
            if row["table_name"] != own.get(row["definition"], row["table_name"]):
                found.setdefault(row["table_name"], set()).add(row["definition"])
        return found
