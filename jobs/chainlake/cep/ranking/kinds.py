"""The kinds of periods in which matches compete, and of scores (docs/language.md#the-best-matches).

Everything about a calendar period is defined here: parser, layout, grammar, days and the limits of a lake use this
table. Periods that are not of the calendar have their own syntax in ``chainlake.cep.language.parsing.ranking``.
Everything about a word of COMBINE is here, too: parser, scores and the strategies of a search use its table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np


@dataclass(frozen=True)
class Calendar:
    """A period of the calendar of a zone.

    Args:
        days: how many days it has at most.
        begin: gives, for a date, the first date of the period that holds it.
        after: gives, for the first date of a period, the first date of the next one.
    """

    days: int
    begin: Callable[[date], date]
    after: Callable[[date], date]


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


#: Periods by the word after PER; None for those that are not of the calendar.
PERIODS: dict[str, Calendar | None] = {
    "DAY": Calendar(1, lambda day: day, lambda day: day + timedelta(days=1)),
    "WEEK": Calendar(7, _monday, lambda day: day + timedelta(days=7)),
    "MONTH": Calendar(31, lambda day: day.replace(day=1), _next_month),
    "ALL": None,
    "BUCKET": None,
    "HOP": None,
}


@dataclass(frozen=True)
class Combining:
    """How the numbers of a score's criteria become one.

    Args:
        join: joins two columns of numbers; None: they are compared one after the other.
        bound: the operation that joins bounds in the same way (``cep.search.bounding``); None: there is none, and no
            match is passed over.
        adds: whether the score is a sum of a term for each criterion.
        within_one: whether a number without NORM that is beyond 0 to 1 is an error.
    """

    join: Callable[[np.ndarray, np.ndarray], np.ndarray] | None
    bound: str | None = None
    adds: bool = False
    within_one: bool = False


#: By the word after COMBINE.
COMBINES = {
    "sum": Combining(np.add, "+", adds=True),
    "avg": Combining(np.add, "+", adds=True),
    "wsum": Combining(np.add, "+", adds=True),
    "min": Combining(np.minimum, "least"),
    "max": Combining(np.maximum, "greatest"),
    "product": Combining(np.multiply, "*", within_one=True),
    "lex": Combining(None),
}
