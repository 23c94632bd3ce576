"""What a ranking asks for, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

#: Columns of a ranked pattern's rows beside those of every pattern.
COLUMNS = ("scope_kind", "scope_start", "scope_end", "per", "rank", "score", "criteria")


@dataclass(frozen=True)
class Criterion:
    """One number of a match that says how good it is.

    Args:
        highest: whether more is better.
        norm: the ends of what counts, or None: values between them become numbers from 0 to 1.
        weight: under ``wsum``.
    """

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

    criteria: tuple[Criterion, ...]
    combine: str = ""

    @property
    def width(self) -> int:
        """How many numbers a score has."""
        return len(self.criteria) if self.combine == "lex" else 1


@dataclass(frozen=True)
class Period:
    """Among which matches a match competes, by time.

    Args:
        kind: ``all``, ``day``, ``week``, ``month``, ``bucket`` or ``hop``.
        size: ticks of a bucket or a window.
        step: ticks from one window to the next.
        offset: where a bucket or a window begins, in ticks.
        by_first: whether the first event says where a match belongs, and not the last.
        zone: by whose clock days, weeks and months begin.
        second: ticks of a second.
    """

    kind: str
    size: int = 0
    step: int = 0
    offset: int = 0
    by_first: bool = False
    zone: str = "UTC"
    second: int = 1_000_000

    @property
    def day(self) -> int:
        """Ticks of a UTC day."""
        return 86_400 * self.second


@dataclass(frozen=True)
class Rule:
    """A ranking.

    Args:
        scores: one for all branches, or one for each branch as written.
        count: so many rows of each list are kept.
        period: what a list is of.
        with_ties: whether rows as good as the last one are kept, too.
        per: how many values say which list a match is in, beside the period.
        distinct: of how many values at most ``most`` rows of a list may agree; 0 for no such limit.
        most: see ``distinct``.
        non_overlapping: whether no event is in two rows of a list.
        least: the smallest score that is kept, or None.
        quantum: scores are compared in steps of it, or None.
    """

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
        """Those of ``COLUMNS`` that say nothing of a row that its pattern does not say."""
        found = {"scope_kind"} | ({"scope_start", "scope_end"} if self.period.kind == "all" else set())
        return frozenset(found if self.per else found | {"per"})

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
