"""A file whose rows count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Effective:
    """One effective file: distinct content under the current definition.

    Args:
        load_id: the load that holds its rows.
        file_date, revision: from its path.
        name: the smallest path that holds it.
        key: the key that its path names, as events hold it, or ``None``.
        whole: it was read to its end and its path says which it is; if not, it replaces nothing.
        first, last: the UTC days between which its rows lie; ``None`` if it has no rows, or if this is not known.
    """

    load_id: str
    file_date: date | None
    revision: int
    name: str
    key: str | None
    whole: bool = True
    first: date | None = None
    last: date | None = None

    def may_be_on(self, first: date, last: date) -> bool:
        """Whether rows of it can lie on the days from ``first`` to ``last``."""
        return self.first is None or self.last is None or (self.first <= last and first <= self.last)


def in_order(files: Iterable[Effective]) -> list[Effective]:
    """The files as their rows are counted: by file date, revision and name."""
    return sorted(files, key=lambda f: (f.file_date or date.min, f.revision, f.name))
