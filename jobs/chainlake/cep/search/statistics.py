"""What a search did: evaluations, tests, orders, back ends, modes."""

from __future__ import annotations

from dataclasses import dataclass, field

from chainlake.cep.heavy.calls import Counted


@dataclass(frozen=True)
class ListCounts:
    """The counts of one list of a ranked pattern.

    Args:
        start, end: of the period, in ticks; both are 0 for all time.
        per: the values of ``FOR EACH`` as a JSON array.
        candidates: how many matches there are; None, like the other two, if some were not looked at.
        excluded_null: how many of them have no score, since a value is missing or not finite.
        below_min_score: how many of them have a score smaller than ``AT LEAST``.
    """

    start: int
    end: int
    per: str
    candidates: int | None
    excluded_null: int | None
    below_min_score: int | None


@dataclass
class BestSearch:
    """How the best matches of a ranked pattern were found (docs/semantics.md#ranking).

    Args:
        strategy: ``A``: all matches were listed; ``B``: the best beginnings were continued; ``C``: what cannot be among
            the best was left out.
        why: why not another strategy, in one phrase.
        partial: how many partial matches, of one event or more, were made, without whole ones; 0 if they were not
            counted.
        tried: how many partial and whole matches were compared with the thresholds of their lists.
        cut: how many of these were left out.
        complete: how many matches were scored.
        unscored: how many of these have no score, since a criterion is missing or not finite.
        switched_off: whether the search continued without bounds, because they cut off too little.
        lacking: under ``B`` and ``C``, names with events that cannot be in a match with a score, since they lack a
            number.
    """

    strategy: str
    why: str = ""
    partial: int = 0
    tried: int = 0
    cut: int = 0
    complete: int = 0
    unscored: int = 0
    switched_off: bool = False
    lacking: tuple[str, ...] = ()

    @property
    def all_seen(self) -> bool:
        """Whether all matches were looked at, so that there are counts of them."""
        return self.strategy == "A"


@dataclass(frozen=True)
class BestSearches:
    """How the best matches were found by several searches together.

    Args:
        ways: each strategy with why it was not another, each once and in order.
        partial, tried, cut, complete: as in ``BestSearch``.
        unscored: matches without a score; None if one of the searches did not look at all of them.
        switched_off: how many searches continued without bounds, because these cut off too few partial matches.
        lacking: as in ``BestSearch``.
    """

    ways: tuple[tuple[str, str], ...] = ()
    partial: int = 0
    tried: int = 0
    cut: int = 0
    complete: int = 0
    unscored: int | None = 0
    switched_off: int = 0
    lacking: tuple[str, ...] = ()

    @classmethod
    def of(cls, one: BestSearch | None) -> BestSearches:
        """Of a single search; empty if there was none."""
        if one is None:
            return cls()
        unscored = one.unscored if one.all_seen else None
        counts = one.partial, one.tried, one.cut, one.complete
        return cls(((one.strategy, one.why),), *counts, unscored, int(one.switched_off), one.lacking)

    def __add__(self, other: BestSearches) -> BestSearches:
        return BestSearches(
            tuple(sorted({*self.ways, *other.ways})),
            self.partial + other.partial,
            self.tried + other.tried,
            self.cut + other.cut,
            self.complete + other.complete,
            None if self.unscored is None or other.unscored is None else self.unscored + other.unscored,
            self.switched_off + other.switched_off,
            tuple(sorted({*self.lacking, *other.lacking})),
        )


@dataclass
class Statistics:
    """What a search did (docs/automata.md#costs).

    Args:
        evaluations: E, edge-condition evaluations of events and sets.
        evaluations_neg: E_neg, negated events tested.
        evaluations_pre: E_pre, single members of sets tested.
        tests: candidates actually tested; the compiled backend skips those that a value rules out.
        matches: matches found.
        long_stretches: stretches of neighbours that gave no match because they are longer than ``limits: longest``.
        order: the binding order of each branch.
        how: where the order came from: ``given``, ``declared``, ``measured`` (frequency) or ``estimated`` (cost).
        backends: what each branch ran on, ``numpy`` or ``compiled``, and why.
        modes: for a pattern that wants only some of its matches, how they were chosen, ``S``, ``P`` or ``B``, and why.
        lists: for a ranked pattern, the counts of its lists, by period and values.
        best: for a ranked pattern, how its best matches were found.
        called: how often functions of pairs were called, and how often their result was known.
    """

    evaluations: int = 0
    evaluations_neg: int = 0
    evaluations_pre: int = 0
    tests: int = 0
    matches: int = 0
    long_stretches: int = 0
    order: list[tuple[str, ...]] = field(default_factory=list)
    how: str = "estimated"
    backends: list[tuple[str, str]] = field(default_factory=list)
    modes: list[tuple[str, str]] = field(default_factory=list)
    lists: list[ListCounts] = field(default_factory=list)
    best: BestSearch | None = None
    called: Counted = field(default_factory=Counted)

    @property
    def pair_evals(self) -> int:
        """For how many pairs a function was called."""
        return self.called.evaluations

    @property
    def pair_memo_hits(self) -> int:
        """For how many pairs the result was known."""
        return self.called.hits

    def count_neg(self, tests: int) -> None:
        """Add to E_neg."""
        self.evaluations_neg += tests

    def add(self, part: Statistics, *, first: bool) -> None:
        """Add the counts of one part of the events; the order and the backends are those of the first part."""
        self.evaluations += part.evaluations
        self.evaluations_neg += part.evaluations_neg
        self.evaluations_pre += part.evaluations_pre
        self.tests += part.tests
        self.long_stretches += part.long_stretches
        self.called.evaluations += part.called.evaluations
        self.called.hits += part.called.hits
        if first:
            self.how = part.how
            self.order += part.order
            self.backends += part.backends
