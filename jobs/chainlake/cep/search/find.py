"""Find all matches of a pattern in a table of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from chainlake.cep.conditions.blocks import Bindings
from chainlake.cep.conditions.computed import add_computed
from chainlake.cep.conditions.evaluate import Candidates, View
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.events.clock import Clock
from chainlake.cep.events.dataset import Dataset, Wanted, kind_of, ticks_of
from chainlake.cep.language.check import Checker
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.completion import completion_of
from chainlake.cep.plan.steps import routing
from chainlake.cep.search.batch import MatchBatch
from chainlake.cep.search.binding.complete import Completer
from chainlake.cep.search.binding.kleene import SetLimit
from chainlake.cep.search.binding.levels import Search
from chainlake.cep.search.choosing.backend import BACKENDS, decide
from chainlake.cep.search.choosing.choice import Choice, Wish, choose, likeness
from chainlake.cep.search.choosing.reach import within_reach
from chainlake.cep.search.compiled.generate import Limits
from chainlake.cep.search.compiled.run import Compiled
from chainlake.cep.search.dedupe import also_matches, same_names
from chainlake.cep.search.keys import parts_by_key
from chainlake.cep.search.largest.kept import Finder
from chainlake.cep.search.measured import measured
from chainlake.cep.search.options import SearchOptions, as_asked
from chainlake.cep.search.ranked import ranked
from chainlake.cep.search.selection.apply import selected
from chainlake.cep.search.statistics import Statistics
from chainlake.cep.search.ties import in_total_order
from chainlake.errors import InputError, LimitExceeded, UsageError

#: Ticks lie nearer to 0 than this, or sums of one and a window (at most 2^61) and differences may not fit in 64 bits.
MOST_TICKS = 1 << 62
#: Matches of a batch that spans fewer days are counted day by day.
_DAYS_ONE_BY_ONE = 8


def find(
    pattern: Pattern,
    events: pa.Table,
    *,
    order: Sequence[str] | None = None,
    own: tuple[int, int] | None = None,
    backend: str = "auto",
    statistics: Statistics | None = None,
    options: SearchOptions | None = None,
) -> Iterator[MatchBatch]:
    """The matches of ``pattern`` in ``events``, each once over all branches (docs/semantics.md#what-a-match-is).

    Example:
        >>> import pyarrow as pa
        >>> import chainlake as cl
        >>> pattern = cl.compile_pattern("PATTERN SEQ(Bar a, Bar b) WHERE b.close > a.close WITHIN 5 min")
        >>> minutes = pa.array([0, 60_000_000, 120_000_000], pa.timestamp("us", tz="UTC"))
        >>> columns = {"event_id": ["1", "2", "3"], "type": ["Bar"] * 3, "ts": minutes, "close": [10.0, 11.0, 10.5]}
        >>> for batch in cl.find(pattern, pa.table(columns)):
        ...     print({name: rows.tolist() for name, rows in batch.single.items()})
        {'a': [0, 0], 'b': [1, 2]}

    Args:
        pattern: the pattern.
        events: columns ``event_id`` (unique), ``type``, ``ts`` (timestamp or µs) and the attributes, rows in any order.
            An attribute that is missing is null.
        order: binding order of the positive names; default: by rates, or as the options say. An order that was chosen
            once is kept for events like those, beside the pattern.
        own: ``[lo, hi)`` in µs; only matches decided in it are given. ``events`` must hold
            ``pattern.source_range(*own)``. Of a ranked pattern, only these compete.
        backend: ``numpy``; ``compiled``, which falls back on NumPy where there is no code for a condition; or ``auto``,
            the one that is estimated to be done first. Both give the same matches and counts; ``statistics`` says
            which it was.
        statistics: filled while matches are drawn.
        options: what is rarely asked for.

    Raises:
        DefinitionError: kinds of columns that the conditions cannot be applied to.
        LimitExceeded: a limit of the front matter was exceeded.
        InputError: missing columns, null ts, a ts that is not within ±2^62 ticks.
        UsageError: ``order`` or ``rates`` do not fit the pattern, or the parts are too many for their span of time.
    """
    options = SearchOptions() if options is None else options
    if options.block_rows < 1:
        raise UsageError("block_rows is at least 1")
    if options.by not in ("cost", "frequency"):
        raise UsageError(f"an order is chosen by cost or by frequency, not by {options.by}")
    if backend not in BACKENDS:
        raise UsageError(f"the backend is one of {', '.join(BACKENDS)}, not {backend}")
    strange = sorted(set(order or ()) - {name.name for name in pattern.names})
    if strange:
        raise UsageError(f"the order names {', '.join(strange)}, which is no positive name of {pattern.name}")
    check_kinds(pattern, events)
    statistics = Statistics() if statistics is None else statistics
    clock: Clock | None = None
    pattern = as_asked(pattern, options)
    if options.ties_in_order:
        if own is not None or options.parts is not None:
            raise UsageError("ties in order are for a search of all events at a time")
        pattern, clock, places = in_total_order(pattern, events)
        options = replace(options, parts=places)
    elif options.parts is None and not pattern.neighbours and not pattern.extras.keep:
        options = replace(options, parts=parts_by_key(pattern, events))
    rates = None if options.rates is None else tuple(sorted(options.rates.items()))
    given = [order] * len(pattern.branches) if options.orders is None else options.orders
    wishes = [Wish(None if one is None else tuple(one), rates, options.by, backend) for one in given]
    ask = _Asked(pattern, events, statistics, wishes, options, clock)
    per_day: dict[int, int] = {}
    found = ask.all(own)
    if pattern.neighbours or pattern.extras.keep:
        found = Finder(pattern, events, statistics, ask.data, ask.branch, options.block_rows).run(own)
    if pattern.extras.policy is not None:
        names = tuple(name.name for name in pattern.names)
        found = selected(pattern.extras.policy, names, events, found)
    if pattern.extras.ranking is not None:
        if options.unranked:
            yield from found
            return
        found = ranked(pattern, events, found, statistics, trailing=options.trailing)
    for batch in found:
        _count(pattern, batch, per_day)
        statistics.matches += batch.n
        yield batch


@dataclass(frozen=True)
class _Asked:
    """What is asked of a search by time.

    Args:
        pattern: the pattern.
        events: the events table.
        statistics: what is counted.
        wishes: how the order of each branch is to be chosen.
        options: the options.
        clock: how times are moved, if it is not for the sake of the parts.
    """

    pattern: Pattern
    events: pa.Table
    statistics: Statistics
    wishes: Sequence[Wish]
    options: SearchOptions
    clock: Clock | None = None

    def data(self, own: tuple[int, int] | None) -> Dataset:
        """The events that matches decided in ``own`` need."""
        return dataset(self.pattern, self.events, own, parts=self.options.parts, clock=self.clock)

    def all(self, own: tuple[int, int] | None) -> Iterator[MatchBatch]:
        """The matches of all branches, each once."""
        run, branches = _Run(self.pattern, self.data(own), own, self.statistics), self.pattern.branches
        for number, branch in enumerate(branches):
            run.scans.append(self.scan(branch, run.data, own))
            doubles = [k for k, earlier in enumerate(branches[:number]) if same_names(earlier, branch)]
            yield from run.branch(number, self.wishes[number], doubles)

    def branch(self, number: int, data: Dataset, own: tuple[int, int] | None) -> Iterator[MatchBatch]:
        """The matches of one branch, also those that others have, too."""
        scans = [self.scan(branch, data, own) for branch in self.pattern.branches[: number + 1]]
        yield from _Run(self.pattern, data, own, self.statistics, scans).branch(number, self.wishes[number], [])

    def scan(self, branch: Branch, data: Dataset, own: tuple[int, int] | None) -> Scan:
        """What a branch looks through."""
        window = self.pattern.window_us
        candidates = within_reach(branch, candidates_of(self.pattern, branch, data, own), window)
        return Scan(data, candidates, window, self.options.block_rows)


@dataclass
class _Run:
    """One search of a pattern.

    Args:
        pattern: the pattern.
        data: the events.
        own: ``[lo, hi)`` of owned decision times, or None for all.
        statistics: what is counted.
        scans: of the branches up to the one that is searched.
    """

    pattern: Pattern
    data: Dataset
    own: tuple[int, int] | None
    statistics: Statistics
    scans: list[Scan] = field(default_factory=list)

    def branch(self, number: int, wish: Wish, doubles: Sequence[int]) -> Iterator[MatchBatch]:
        """The matches of a branch that none of the branches ``doubles`` has."""
        pattern, scan, statistics = self.pattern, self.scans[number], self.statistics
        branch, before = pattern.branches[number], self.statistics.evaluations
        key = (number, wish, likeness(scan))
        choice = pattern.memory.recall(key, Choice)
        if choice is None:
            choice = choose(pattern, branch, scan, wish)
            pattern.memory.keep(key, choice)
        statistics.order.append(choice.plan.order)
        statistics.how = choice.how
        limits = Limits(pattern.window_us, pattern.open_right, pattern.limits["kleene_members"])
        compiled = Compiled(scan, choice.plan, limits, pattern.memory, key)
        decision = decide(wish.backend, compiled, choice.estimate)
        statistics.backends.append((decision.backend, decision.why))
        pause, most = pattern.extras.pause, pattern.limits["set_members"]
        complete = Completer(completion_of(branch, pause), scan, most, statistics)
        positions = bool(doubles or pattern.extras.values) or not complete.completion.is_nothing
        blocks = self._blocks(scan, choice, decision.compiled, positions=positions)
        for found in (whole for block in blocks for _, whole in complete.run(block)):
            for earlier in doubles:
                double = also_matches(pattern.branches[earlier], branch, found, scan, self.scans[earlier], pause)
                found = found.only(~double)
            if found.n:
                rows = None if decision.compiled is not None and not positions else scan.candidates
                batch = _batch(number, found, rows, self.data, pattern)
                if pattern.extras.values:
                    batch = replace(batch, measures=measured(pattern, number, found, scan))
                yield batch
        evaluations = statistics.evaluations - before
        if not choice.held(evaluations):
            pattern.memory.forget(key)
            compiled.forget()
        elif choice.evaluations is None:
            pattern.memory.keep(key, replace(choice, evaluations=evaluations))

    def _blocks(self, scan: Scan, choice: Choice, compiled: Compiled | None, *, positions: bool) -> Iterator[Bindings]:
        """What a backend finds, as far as it is owned."""
        if compiled is not None:
            yield from compiled.run(self.own, self.statistics, positions=positions)
            return
        pattern, own = self.pattern, self.own
        members = pattern.limits["kleene_members"]
        limit = SetLimit(members, pattern.open_right, own, pattern.window_us, self.data.clock)
        for found in Search(scan, choice.plan, limit, self.statistics).run():
            if own is not None:
                decided = self.data.real(found.start + pattern.window_us if pattern.open_right else found.end)
                found = found.only((decided >= own[0]) & (decided < own[1]))
            yield found


def dataset(
    pattern: Pattern,
    events: pa.Table,
    own: tuple[int, int] | None = None,
    *,
    by_id: bool | None = None,
    parts: np.ndarray | None = None,
    clock: Clock | None = None,
) -> Dataset:
    """The events that ``pattern`` may use for the matches decided in ``own``, with the columns it mentions.

    Ties of ts are in the order of the ids as ``by_id`` says; default: where that order can show (in sums over sets, and
    in E_neg). ``parts`` are those of ``find``, and ``clock`` says how their times are moved.

    Raises:
        InputError: missing columns, null ts, a ts that is not within ±2^62 ticks.
        UsageError: too many parts for their span of time.
    """
    events = add_computed(events, pattern.extras.computed, pattern.key, pattern.strict)
    lo, hi = (None, None) if own is None else pattern.read_range(*own)
    # Neighbours are put in order among themselves, which takes less than to order the events of all keys.
    shown = (b.collected or b.stream is None and (b.sets or b.negated or b.until) for b in pattern.branches)
    in_order = any(shown) if by_id is None else by_id
    types, attributes, words = pattern.event_types, pattern.searched, pattern.words
    wanted = Wanted(types, attributes, words, lo, hi, in_order, pattern.strict, pattern.in_stream)
    apart = None if parts is None or not len(parts) else (clock or _clock(pattern, events, parts), parts)
    data = Dataset(events, wanted, apart)
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
    schema = events.schema
    types = tuple(schema.field(attr).type if attr in schema.names else None for attr in pattern.mentioned)
    key = ("kinds", types)
    if pattern.memory.recall(key, bool):
        return
    known = {
        attr: "null" if kind is None else kind_of(kind) or "unusable"
        for attr, kind in zip(pattern.mentioned, types, strict=True)
    }
    checker = Checker(pattern.text, known, pattern.strict)
    for literal in pattern.extras.conditions:
        checker.condition(literal)
    for value in pattern.extras.measured:
        checker.kind(value)
    if pattern.extras.ranking is not None:
        pattern.extras.ranking.check(pattern.text, checker)
    pattern.memory.keep(key, True)


def candidates_of(
    pattern: Pattern, branch: Branch, data: Dataset, own: tuple[int, int] | None = None
) -> dict[str, Candidates]:
    """The events that each name of ``branch`` accepts by its own conditions, as far as the matches of ``own`` go."""
    found: dict[str, Candidates] = {}
    of_type: dict[str, Candidates] = {}
    for name, clauses in routing(branch).items():
        kind = branch.types[name]
        if kind not in of_type:
            of_type[kind] = Candidates(data, data.marks(kind))
        candidates = of_type[kind]
        tests = [View.of_all(data, name, candidates).holds(clause, frozenset()) for clause in clauses]
        if own is not None and _decides(pattern, branch, name):
            ts = data.real(candidates.ts)
            early = pattern.window_us if pattern.open_right else 0
            tests.append(ts >= own[0] - early)
            if pattern.open_right:
                tests.append(ts < own[1] - early)
        keep = np.logical_and.reduce(tests) if tests else np.ones(1, bool)
        found[name] = candidates if keep.all() else Candidates(data, candidates.rows[keep])
    return found


def _decides(pattern: Pattern, branch: Branch, name: str) -> bool:
    """Whether ≺ alone says that the time of a name's event decides who owns a match."""
    positive = set(branch.positive)
    if name in branch.kleene or name not in positive or pattern.extras.keep:
        return False
    return (branch.after if pattern.open_right else branch.before)[name] >= positive - {name}


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
        end if pattern.decision == "end" else start + pattern.window_us,
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
