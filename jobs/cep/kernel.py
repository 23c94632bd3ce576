"""Find all matches of a pattern in a table of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from jobs.cep.blocks import Bindings
from jobs.cep.check import Checker
from jobs.cep.columns import Dataset, kind_of
from jobs.cep.dedupe import also_matches
from jobs.cep.evaluate import Candidates, View
from jobs.cep.kleene import SetLimit
from jobs.cep.normal_form import Branch
from jobs.cep.order import choose_order, given_order
from jobs.cep.pattern import Pattern
from jobs.cep.plan import make_plan, routing
from jobs.cep.search import Search, Statistics
from jobs.cep.selectivity import measure
from jobs.errors import LimitExceeded, UsageError

#: Candidate bindings in memory at a time and level.
BLOCK_ROWS = 1 << 17


@dataclass(frozen=True)
class MatchBatch:
    """Some matches of one branch.

    Args:
        branch: its number.
        n: how many matches.
        start_us: smallest ts of each match (µs, or native units of a pattern that is not strict).
        end_us: largest ts of each match.
        decision_us: decision time of each match.
        single: name to row of its event in the events table.
        kleene: name to (offsets, rows) of its events, each match's in (ts, id) order.
    """

    branch: int
    n: int
    start_us: np.ndarray
    end_us: np.ndarray
    decision_us: np.ndarray
    single: dict[str, np.ndarray]
    kleene: dict[str, tuple[np.ndarray, np.ndarray]]


def find(
    pattern: Pattern,
    events: pa.Table,
    *,
    order: Sequence[str] | None = None,
    orders: Sequence[Sequence[str]] | None = None,
    rates: Mapping[str, float] | None = None,
    by: str = "cost",
    own: tuple[int, int] | None = None,
    block_rows: int = BLOCK_ROWS,
    statistics: Statistics | None = None,
) -> Iterator[MatchBatch]:
    """The matches of ``pattern`` in ``events``, each exactly once over all branches (spec 1.5).

    Args:
        pattern: the pattern.
        events: columns ``event_id`` (unique), ``type``, ``ts`` (timestamp or µs) and the attributes, rows in any order.
            An attribute that is missing is null.
        order: binding order of the positive names; default: by rates, or as ``by`` says.
        orders: the same for each branch by itself.
        rates: events per name in any common unit; default: the front matter's.
        by: without order and rates: ``cost`` takes the order of the lowest estimated cost (jobs.cep.cost),
            ``frequency`` the rarest name first.
        own: ``[lo, hi)`` in µs; only matches decided in it are given. ``events`` must hold ``pattern.read_range(own)``.
        block_rows: bounds the memory.
        statistics: filled while matches are drawn.

    Raises:
        DefinitionError: kinds of columns that the conditions cannot be applied to.
        LimitExceeded: a limit of the front matter was exceeded.
        InputError: missing columns, null ts.
        UsageError: ``order`` or ``rates`` do not fit the pattern.
    """
    if block_rows < 1:
        raise UsageError("block_rows is at least 1")
    if by not in ("cost", "frequency"):
        raise UsageError(f"an order is chosen by cost or by frequency, not by {by}")
    strange = sorted(set(order or ()) - {name.name for name in pattern.names})
    if strange:
        raise UsageError(f"the order names {', '.join(strange)}, which is no positive name of {pattern.name}")
    statistics = Statistics() if statistics is None else statistics
    check_kinds(pattern, events)
    data = dataset(pattern, events, own)
    per_day: dict[int, int] = {}
    all_candidates: list[dict[str, Candidates]] = []
    for number, branch in enumerate(pattern.branches):
        candidates = candidates_of(pattern, branch, data, own)
        all_candidates.append(candidates)
        given = order if orders is None else orders[number]
        chosen = order_of(pattern, branch, data, candidates, given, rates, by, statistics)
        statistics.order.append(chosen)
        by_start = pattern.open_right
        search = Search(
            data,
            make_plan(branch, chosen),
            candidates,
            pattern.window_us,
            SetLimit(pattern.limits["kleene_members"], by_start, own, pattern.window_us),
            block_rows,
            statistics,
        )
        for found in search.run():
            decision = found.start + pattern.window_us if by_start else found.end
            kept = np.ones(found.n, bool) if own is None else (decision >= own[0]) & (decision < own[1])
            for earlier in range(number):
                kept &= ~also_matches(
                    pattern.branches[earlier], branch, found, candidates, all_candidates[earlier], data,
                    pattern.window_us, block_rows,
                )
            if not kept.all():
                found = found.at(np.flatnonzero(kept))
            if found.n:
                batch = _batch(number, found, candidates, data, pattern)
                _count(pattern, batch, per_day)
                statistics.matches += batch.n
                yield batch


def dataset(
    pattern: Pattern, events: pa.Table, own: tuple[int, int] | None = None, *, by_id: bool = False
) -> Dataset:
    """The events that ``pattern`` may use for the matches decided in ``own``, with the columns it mentions.

    Ties of ts are in the order of the ids where that order can show (in sums over sets, and in E_neg), or if ``by_id``.
    """
    lo, hi = (None, None) if own is None else pattern.read_range(*own)
    return Dataset(
        events,
        types=pattern.event_types,
        attributes=pattern.mentioned,
        words=pattern.words,
        lo=lo,
        hi=hi,
        by_id=by_id or any(b.kleene or b.negated for b in pattern.branches),
        strict=pattern.strict,
    )


def check_kinds(pattern: Pattern, events: pa.Table) -> None:
    """Check the conditions against the kinds of the events' columns (DefinitionError)."""
    kinds = {name: kind_of(events.schema.field(name).type) or "unusable" for name in events.column_names}
    known = {attr: kinds.get(attr, "null") for attr in pattern.mentioned}
    checker = Checker(pattern.text, known, pattern.strict)
    for literal in (x for b in pattern.branches for c in b.clauses for x in c.literals):
        checker.condition(literal)


def candidates_of(
    pattern: Pattern, branch: Branch, data: Dataset, own: tuple[int, int] | None = None
) -> dict[str, Candidates]:
    """The events that each name of ``branch`` accepts by its own conditions, as far as the matches of ``own`` go."""
    found: dict[str, Candidates] = {}
    for name, clauses in routing(branch).items():
        candidates = Candidates(data, data.of_type(branch.types[name]))
        keep = np.ones(len(candidates), bool)
        everything = View(data, len(candidates), {name: (candidates, np.arange(len(candidates)))}, {})
        for clause in clauses:
            keep &= everything.holds(clause, frozenset())
        if own is not None:
            keep &= _may_be_owned(pattern, branch, name, candidates.ts, own)
        found[name] = candidates if keep.all() else Candidates(data, candidates.rows[keep])
    return found


def _may_be_owned(
    pattern: Pattern, branch: Branch, name: str, ts: np.ndarray, own: tuple[int, int]
) -> np.ndarray:
    """Which events of a name can be in an owned match, where ≺ alone says that the name decides the match."""
    positive = set(branch.positive)
    if name in branch.kleene or name not in positive:
        return np.ones(len(ts), bool)
    if pattern.open_right:
        first = branch.after[name] >= positive - {name}
        return (ts >= own[0] - pattern.window_us) & (ts < own[1] - pattern.window_us) if first else (
            np.ones(len(ts), bool)
        )
    last = branch.before[name] >= positive - {name}
    return ts >= own[0] if last else np.ones(len(ts), bool)


def order_of(
    pattern: Pattern,
    branch: Branch,
    data: Dataset,
    candidates: dict[str, Candidates],
    order: Sequence[str] | None,
    rates: Mapping[str, float] | None,
    by: str,
    statistics: Statistics,
) -> tuple[str, ...]:
    """The binding order of a branch, as ``find`` takes it; ``statistics.how`` is set to where it came from."""
    if order is not None:
        statistics.how = "given"
        return given_order(branch, order)
    stated = rates if rates is not None else pattern.front.rates
    if stated and all(name in stated for name in branch.positive):
        statistics.how = "declared"
        return choose_order(branch, {name: float(stated[name]) for name in branch.positive})
    if rates is not None:
        missing = [name for name in branch.positive if name not in rates]
        raise UsageError(f"there is no rate for {', '.join(missing)}")
    if by == "cost":
        statistics.how = "estimated"
        return measure(branch, data, candidates, pattern.window_us).best()
    statistics.how = "measured"
    return choose_order(branch, {name: float(len(candidates[name])) for name in branch.positive})


def _batch(
    number: int, found: Bindings, candidates: dict[str, Candidates], data: Dataset, pattern: Pattern
) -> MatchBatch:
    def rows(name: str, positions: np.ndarray) -> np.ndarray:
        return data.rows[candidates[name].rows[positions]]

    return MatchBatch(
        number,
        found.n,
        found.start,
        found.end,
        found.start + pattern.window_us if pattern.open_right else found.end,
        {name: rows(name, positions) for name, positions in found.singles.items()},
        {name: (offsets, rows(name, flat)) for name, (offsets, flat) in found.groups.items()},
    )


def _count(pattern: Pattern, batch: MatchBatch, per_day: dict[int, int]) -> None:
    limit = pattern.limits["matches_per_day"]
    ticks_per_day = 86_400 * (1_000_000 if pattern.strict else 1)
    days, counts = np.unique(batch.decision_us // ticks_per_day, return_counts=True)
    for day, count in zip(days.tolist(), counts.tolist(), strict=True):
        per_day[day] = per_day.get(day, 0) + count
        if per_day[day] > limit:
            raise LimitExceeded(
                f"the pattern {pattern.name} has more than {limit} matches on day {np.datetime64(day, 'D')}",
                key="matches_per_day",
                hint="Add conditions or shorten the window, or raise matches_per_day under limits:.",
            )
