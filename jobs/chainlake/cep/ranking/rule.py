"""What a ranking asks for, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chainlake.cep.ranking.kinds import PERIODS, Calendar

#: The columns that rows of a ranked pattern have beside those of every pattern.
COLUMNS = ("scope_kind", "scope_start", "scope_end", "per", "rank", "score", "criteria")


@dataclass(frozen=True)
class Criterion:
    """One number of a match that says how good it is.

    Args:
        highest: whether more is better.
        norm: the ends between which values become numbers from 0 to 1, or None.
        weight: its weight under ``wsum``.
    """

    #: Of the hash of a ranking (`digests.hashed_fields`), as of the classes below.
    ALWAYS_HASHED: ClassVar[tuple[str, ...]] = ("norm", "weight")

    highest: bool
    norm: tuple[float, float] | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class Score:
    """How criteria become a score: one number, or several that are compared from left to right under ``lex``.

    Args:
        criteria: in the order written.
        combine: ``sum``, ``avg``, ``wsum``, ``min``, ``max``, ``product``, ``lex``; empty for a single criterion.
    """

    ALWAYS_HASHED: ClassVar[tuple[str, ...]] = ("combine",)

    criteria: tuple[Criterion, ...]
    combine: str = ""

    @property
    def width(self) -> int:
        """How many numbers a score has."""
        return len(self.criteria) if self.combine == "lex" else 1


@dataclass(frozen=True)
class Period:
    """By time, the matches among which a match competes.

    Args:
        kind: a word of ``PERIODS``, in lower case.
        size: ticks of a bucket or a window.
        step: ticks from one window to the next.
        offset: where a bucket or a window begins, in ticks.
        by_first: whether a match belongs where its first event is, not its last.
        zone: the time zone by whose clock a period of the calendar begins.
        second: how many ticks a second has.
    """

    ALWAYS_HASHED: ClassVar[tuple[str, ...]] = ("size", "step", "offset", "by_first", "zone", "second")

    kind: str
    size: int = 0
    step: int = 0
    offset: int = 0
    by_first: bool = False
    zone: str = "UTC"
    second: int = 1_000_000

    @property
    def day(self) -> int:
        """How many ticks a UTC day has."""
        return 86_400 * self.second

    @property
    def calendar(self) -> Calendar | None:
        """The entry of ``PERIODS``; None if the period is not one of the calendar."""
        return PERIODS[self.kind.upper()]

    @property
    def longest(self) -> int | None:
        """How many ticks the period has at most, ignoring changes of clocks; None if it has no end."""
        if self.kind == "all":
            return None
        return self.size if self.calendar is None else self.calendar.days * self.day


@dataclass(frozen=True)
class Rule:
    """A ranking.

    Args:
        scores: one for all branches, or one for each branch as written.
        count: how many rows of each list are kept.
        period: the period that a list covers.
        with_ties: whether rows as good as the last one are kept, too.
        per: how many values, beside the period, decide which list a match is in.
        distinct: how many values ``DISTINCT ON`` has; at most ``most`` rows of a list may agree in all; 0 for no limit.
        most: see ``distinct``.
        non_overlapping: whether no event is in two rows of a list.
        least: the smallest score that is kept, or None.
        quantum: the step in which scores are compared, or None.
    """

    ALWAYS_HASHED: ClassVar[tuple[str, ...]] = (
        "with_ties", "per", "distinct", "most", "non_overlapping", "least", "quantum",
    )  # fmt: skip

    scores: tuple[Score, ...]
    count: int
    period: Period
    with_ties: bool = False
    per: int = 0
    distinct: int = 0
    most: int = 1
    non_overlapping: bool = False
    least: float | None = None
    quantum: float | None = None

    def score(self, branch: int) -> Score:
        """The score of a branch as written."""
        return self.scores[branch if len(self.scores) > 1 else 0]

    @property
    def unsaid(self) -> frozenset[str]:
        """Those of ``COLUMNS`` that say nothing about a row beyond what its pattern says."""
        found = {"scope_kind"} | ({"scope_start", "scope_end"} if self.period.kind == "all" else set())
        return frozenset(found if self.per else found | {"per"})

    @property
    def said(self) -> tuple[str, ...]:
        """The others of ``COLUMNS``, which a row has after the measures."""
        return tuple(name for name in COLUMNS if name not in self.unsaid)

    @property
    def criteria(self) -> int:
        """The largest number of criteria of a branch."""
        return max(len(one.criteria) for one in self.scores)


def value_names(rule: Rule) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The columns of the values of a ranking, which have names that no measure can have."""
    return (
        tuple(f"criterion {number}" for number in range(rule.criteria)),
        tuple(f"for each {number}" for number in range(rule.per)),
        tuple(f"distinct on {number}" for number in range(rule.distinct)),
    )
