"""The truth file: what a generated set of landing files contains, and where the planted things are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from chainlake.days import day_of_us, instant


def instant_text(us: int) -> str:
    """A time as ISO text in UTC, to the microsecond if it has a fraction."""
    return instant(us).isoformat().replace("+00:00", "Z")


@dataclass
class Truth:
    """Collects the truth while files are written.

    Attributes:
        head: what was asked for.
        files: name, local date and number of data rows of each file.
        days: UTC day → outcome (`events`, `duplicates`, `conflicts`) → number of rows.
        bad: file, line (1-based, including the header) and kind of every row that cannot be parsed.
        late: number of rows that were delivered in the next day's file.
        patterns: shipped pattern → the planted matches.
        changes: the planted changes of the relation.
    """

    head: dict[str, Any]
    files: list[dict[str, Any]] = field(default_factory=list)
    days: dict[str, Counter[str]] = field(default_factory=dict)
    bad: list[dict[str, Any]] = field(default_factory=list)
    late: int = 0
    patterns: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)

    def count(self, outcome: str, utc: np.ndarray) -> None:
        """Count rows with this outcome at these times (microseconds since the epoch)."""
        ordinals, rows = np.unique(np.asarray(utc, dtype=np.int64) // 86_400_000_000, return_counts=True)
        for ordinal, number in zip(ordinals.tolist(), rows.tolist(), strict=True):
            day = day_of_us(ordinal * 86_400_000_000).isoformat()
            self.days.setdefault(day, Counter())[outcome] += number

    def as_dict(self) -> dict[str, Any]:
        """The truth in the form of the file, with totals."""
        outcomes = ("events", "duplicates", "conflicts")
        totals = {name: sum(day[name] for day in self.days.values()) for name in outcomes}
        totals |= {"bad": len(self.bad), "rows": sum(file["rows"] for file in self.files), "late": self.late}
        return self.head | {
            "files": self.files,
            "totals": totals,
            "utc_days": {day: {name: self.days[day][name] for name in outcomes} for day in sorted(self.days)},
            "bad_rows": self.bad,
            "patterns": self.patterns,
            "changes": self.changes,
        }
