"""A file whose rows count."""

from __future__ import annotations

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
    """

    load_id: str
    file_date: date | None
    revision: int
    name: str
    key: str | None
    whole: bool = True
