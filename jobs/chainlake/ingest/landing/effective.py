"""A file whose rows count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Effective:
    """One effective file: a distinct content, read under the current definition.

    Args:
        load_id: the load that holds its rows.
        file_date, revision: from its path.
        name: the smallest path that holds it.
        key: the key that its path names, as events have it, or ``None``.
        whole: whether it was read to its end and its path identifies it; if not, it replaces nothing.
        first, last: first and last UTC day on which it has rows; ``None`` if it has no rows, or if this is not known.
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
        """Whether it can have rows on the days from ``first`` to ``last``, inclusive."""
        return self.first is None or self.last is None or (self.first <= last and first <= self.last)


def in_order(files: Iterable[Effective]) -> list[Effective]:
    """The files in the order in which their rows count: by file date, revision and name."""
    return sorted(files, key=lambda f: (f.file_date or date.min, f.revision, f.name))
