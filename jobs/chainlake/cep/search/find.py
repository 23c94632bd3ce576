"""Find all matches of a pattern in a table of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from chainlake.cep.conditions.blocks import Bindings
from chainlake.cep.conditions.evaluate import Candidates, View
from chainlake.cep.estimate.cost import Model
from chainlake.cep.estimate.selectivity import measure, upper_bound
from chainlake.cep.events.clock import Clock
from chainlake.cep.events.dataset import Dataset, kind_of, ticks_of
from chainlake.cep.language.check import Checker
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.order import choose_order, given_order
from chainlake.cep.plan.steps import make_plan, routing
from chainlake.cep.search.backend import BACKENDS, decide
from chainlake.cep.search.batch import MatchBatch
from chainlake.cep.search.compiled.run import Compiled
from chainlake.cep.search.dedupe import also_matches, same_names
from chainlake.cep.search.kleene import SetLimit
from chainlake.cep.search.levels import Search
from chainlake.cep.search.reach import within_reach
from chainlake.cep.search.seconds import best_order
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import InputError, LimitExceeded, UsageError

#: Candidate bindings in memory at a time and level.
BLOCK_ROWS = 1 << 17
#: Ticks lie nearer to 0 than this, or sums of one and a window (at most 2^61) and differences may not fit in 64 bits.
MOST_TICKS = 1 << 62
#: Evaluations, by their upper bound, from which a run with a given order looks what they really are.
WORTH_MEASURING = 2_000_000
#: Matches of a batch that spans fewer days are counted day by day.
_DAYS_ONE_BY_ONE = 8


def find(
    pattern: Pattern,
    events: pa.Table,
    *,
    order: Sequence[str] | None = None,
    orders: Sequence[Sequence[str]] | None = None,
    rates: Mapping[str, float] | None = None,
    by: str = "cost",
    backend: str = "auto",
    own: tuple[int, int] | None = None,
    parts: np.ndarray | None = None,
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
        by: without order and rates: ``cost`` takes the order of the fewest estimated seconds
            (chainlake.cep.search.seconds), ``frequency`` the rarest name first.
        backend: ``numpy``; ``compiled``, which falls back on NumPy where there is no code for a condition; or ``auto``,
            the one that is estimated to be done first. Both give the same matches and counts; ``statistics`` says
            which it was.
        own: ``[lo, hi)`` in µs; only matches decided in it are given. ``events`` must hold ``pattern.read_range(own)``.
        parts: a whole number from 0 on for each event, in the order of the rows: the matches are those of the events of
            each number by itself. So all keys of a partitioned pattern can be searched at a time.
        block_rows: bounds the memory.
        statistics: filled while matches are drawn.

    Raises:
        DefinitionError: kinds of columns that the conditions cannot be applied to.
        LimitExceeded: a limit of the front matter was exceeded.
        InputError: missing columns, null ts, a ts that is not within ±2^62 ticks.
        UsageError: ``order`` or ``rates`` do not fit the pattern, or the parts are too many for their span of time.
    """
    if block_rows < 1:
        raise UsageError("block_rows is at least 1")
    if by not in ("cost", "frequency"):
        raise UsageError(f"an order is chosen by cost or by frequency, not by {by}")
    if backend not in BACKENDS:
        raise UsageError(f"the backend is one of {', '.join(BACKENDS)}, not {backend}")
    strange = sorted(set(order or ()) - {name.name for name in pattern.names})
    if strange:
        raise UsageError(f"the order names {', '.join(strange)}, which is no positive name of {pattern.name}")
    statistics = Statistics() if statistics is None else statistics
    check_kinds(pattern, events)
    data = dataset(pattern, events, own, parts=parts)
    per_day: dict[int, int] = {}
    all_candidates: list[dict[str, Candidates]] = []
    for number, branch in enumerate(pattern.branches):
        candidates = within_reach(branch, candidates_of(pattern, branch, data, own), pattern.window_us)
        all_candidates.append(candidates)
        given = order if orders is None else orders[number]
        chosen, model = order_of(pattern, branch, data, candidates, given, rates, by, statistics, backend)
        statistics.order.append(chosen)
        if model is None and backend == "auto":
            model = upper_bound(branch, candidates, pattern.window_us)
            if model.evaluations(chosen) > WORTH_MEASURING:
                model = measure(branch, data, candidates, pattern.window_us)
        by_start = pattern.open_right
        doubles = [earlier for earlier in pattern.branches[:number] if same_names(earlier, branch)]
        plan = make_plan(branch, chosen)
        compiled = Compiled(data, plan, candidates, pattern.window_us, by_start, pattern.limits["kleene_members"])
        decision = decide(backend, compiled, model)
        statistics.backends.append((decision.backend, decision.why))
        if decision.compiled is not None:
            blocks = decision.compiled.run(own, block_rows, statistics, positions=bool(doubles))
        else:
            limit = SetLimit(pattern.limits["kleene_members"], by_start, own, pattern.window_us, data.clock)
            blocks = Search(data, plan, candidates, pattern.window_us, limit, block_rows, statistics).run()
        for found in blocks:
            if own is not None and decision.compiled is None:
                decided = data.real(found.start + pattern.window_us if by_start else found.end)
                found = found.only((decided >= own[0]) & (decided < own[1]))
            for earlier in doubles:
                found = found.only(
                    ~also_matches(
                        earlier, branch, found, candidates, all_candidates[pattern.branches.index(earlier)], data,
                        pattern.window_us, block_rows,
                    )
                )  # fmt: skip
            if found.n:
                rows = None if decision.compiled is not None and not doubles else candidates
                batch = _batch(number, found, rows, data, pattern)
                _count(pattern, batch, per_day)
                statistics.matches += batch.n
                yield batch


def dataset(
    pattern: Pattern,
    events: pa.Table,
    own: tuple[int, int] | None = None,
    *,
    by_id: bool | None = None,
    parts: np.ndarray | None = None,
) -> Dataset:
    """The events that ``pattern`` may use for the matches decided in ``own``, with the columns it mentions.

    Ties of ts are in the order of the ids as ``by_id`` says; default: where that order can show (in sums over sets, and
    in E_neg). ``parts`` are those of ``find``.

    Raises:
        InputError: missing columns, null ts, a ts that is not within ±2^62 ticks.
        UsageError: too many parts for their span of time.
    """
    lo, hi = (None, None) if own is None else pattern.read_range(*own)
    data = Dataset(
        events,
        types=pattern.event_types,
        attributes=pattern.mentioned,
        words=pattern.words,
        lo=lo,
        hi=hi,
        by_id=any(b.kleene or b.negated for b in pattern.branches) if by_id is None else by_id,
        strict=pattern.strict,
        apart=None if parts is None or not len(parts) else (_clock(pattern, events, parts), parts),
    )
    if len(data.ts):
        ends = (data.ts[0], data.ts[-1])
        if data.clock is not None:
            times = data.columns["ts"].values
            ends = (times.min(), times.max())
        beyond = [int(tick) for tick in ends if not -MOST_TICKS < int(tick) < MOST_TICKS]
        if beyond:
            raise InputError(
                f"timestamps must lie within ±2^62 ({MOST_TICKS}) ticks, but one is {beyond[0]}",
                key="ts",
                hint="State times in a coarser unit, or from a later zero.",
            )
    return data


def _clock(pattern: Pattern, events: pa.Table, parts: np.ndarray) -> Clock:
    ts = ticks_of(events["ts"], "ts")
    clock = Clock.over(int(ts.min()), int(ts.max()), pattern.window_us)
    if int(parts.max()) >= clock.most_parts:
        raise UsageError(f"{int(parts.max()) + 1} parts cannot be searched at a time: their times exceed 62 bits")
    return clock


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
        tests = [View.of_all(data, name, candidates).holds(clause, frozenset()) for clause in clauses]
        if own is not None:
            tests.append(_may_be_owned(pattern, branch, name, data.real(candidates.ts), own))
        keep = np.logical_and.reduce(tests) if tests else np.ones(1, bool)
        found[name] = candidates if keep.all() else Candidates(data, candidates.rows[keep])
    return found


def _may_be_owned(pattern: Pattern, branch: Branch, name: str, ts: np.ndarray, own: tuple[int, int]) -> np.ndarray:
    """Which events of a name can be in an owned match, where ≺ alone says that the name decides the match."""
    positive = set(branch.positive)
    if name in branch.kleene or name not in positive:
        return np.ones(len(ts), bool)
    if pattern.open_right:
        first = branch.after[name] >= positive - {name}
        return (
            (ts >= own[0] - pattern.window_us) & (ts < own[1] - pattern.window_us)
            if first
            else (np.ones(len(ts), bool))
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
    backend: str = "auto",
) -> tuple[tuple[str, ...], Model | None]:
    """The binding order of a branch, as ``find`` takes it, and the cost model if it came from one.

    ``statistics.how`` is set to where it came from.
    """
    if order is not None:
        statistics.how = "given"
        return given_order(branch, order), None
    stated = rates if rates is not None else pattern.front.rates
    if stated and all(name in stated for name in branch.positive):
        statistics.how = "declared"
        return choose_order(branch, {name: float(stated[name]) for name in branch.positive}), None
    if rates is not None:
        missing = [name for name in branch.positive if name not in rates]
        raise UsageError(f"there is no rate for {', '.join(missing)}")
    if by == "cost":
        statistics.how = "estimated"
        model = measure(branch, data, candidates, pattern.window_us)
        return best_order(model, backend), model
    statistics.how = "measured"
    return choose_order(branch, {name: float(len(candidates[name])) for name in branch.positive}), None


def _batch(
    number: int, found: Bindings, candidates: dict[str, Candidates] | None, data: Dataset, pattern: Pattern
) -> MatchBatch:
    """Bound positions among ``candidates``, or rows of the events table where these are None, as a batch."""

    def rows(name: str, positions: np.ndarray) -> np.ndarray:
        return positions if candidates is None else data.rows_of(candidates[name].rows[positions])

    start, end = data.real(found.start), data.real(found.end)
    return MatchBatch(
        number,
        found.n,
        start,
        end,
        start + pattern.window_us if pattern.open_right else end,
        {name: rows(name, positions) for name, positions in found.singles.items()},
        {name: (offsets, rows(name, flat)) for name, (offsets, flat) in found.groups.items()},
    )


def _count(pattern: Pattern, batch: MatchBatch, per_day: dict[int, int]) -> None:
    limit = pattern.limits["matches_per_day"]
    ticks_per_day = 86_400 * (1_000_000 if pattern.strict else 1)
    first, last = int(batch.decision_us.min()) // ticks_per_day, int(batch.decision_us.max()) // ticks_per_day
    if last - first < _DAYS_ONE_BY_ONE:
        # A comparison per day is quicker than to divide every time, let alone to sort them.
        before = [0, *(np.count_nonzero(batch.decision_us < d * ticks_per_day) for d in range(first + 1, last + 1))]
        counted = [(first + i, n) for i, n in enumerate(np.diff([*before, batch.n]).tolist()) if n]
    else:
        days, counts = np.unique(batch.decision_us // ticks_per_day, return_counts=True)
        counted = list(zip(days.tolist(), counts.tolist(), strict=True))
    for day, count in counted:
        per_day[day] = per_day.get(day, 0) + count
        if per_day[day] > limit:
            raise LimitExceeded(
                f"the pattern {pattern.name} has more than {limit} matches on day {np.datetime64(day, 'D')}",
                key="matches_per_day",
                hint="Add conditions or shorten the window, or raise matches_per_day under limits:.",
            )
