"""Find all matches of a pattern in a table of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from chainlake.cep.conditions.blocks import FAR
from chainlake.cep.conditions.computed import add_computed
from chainlake.cep.conditions.evaluate import Candidates, View
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.errors import UnfitOption
from chainlake.cep.events.clock import MOST_TICKS, Clock
from chainlake.cep.events.columns import kind_of, ticks_of
from chainlake.cep.events.dataset import Dataset, Wanted
from chainlake.cep.events.errors import UnfitTimes
from chainlake.cep.heavy.calls import Calls
from chainlake.cep.heavy.memo import Memo
from chainlake.cep.language.check import Checker
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.steps import routing
from chainlake.cep.policy import Policy
from chainlake.cep.search.allocator import keep_freed_memory
from chainlake.cep.search.bounding.strategy import strategies
from chainlake.cep.search.bounding.thresholds import Thresholds
from chainlake.cep.search.branches import Ready, Run
from chainlake.cep.search.choosing.choice import OrderRequest
from chainlake.cep.search.choosing.reach import within_reach
from chainlake.cep.search.dedupe import same_names
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.cep.search.found.days import count_days
from chainlake.cep.search.keys import parts_by_key
from chainlake.cep.search.largest.kept import Finder
from chainlake.cep.search.options import SearchOptions, as_asked, check_asked, used_rows
from chainlake.cep.search.ownership import decides
from chainlake.cep.search.paths.strategy_run import Asked, choose_strategy
from chainlake.cep.search.ranked import Best, ranked
from chainlake.cep.search.selection.apply import Selection
from chainlake.cep.search.selection.modes import kernel_choice, why_not
from chainlake.cep.search.statistics import BestSearch, Statistics
from chainlake.cep.search.strict.blocks import blocks
from chainlake.cep.search.ties import in_total_order

#: How many events per row of a block are searched at a time for neighbours of one key, so that arrays fit in caches.
_EVENTS_PER_ROW = 4


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
        order: binding order of the positive names; default: by rates, or as the options say. A chosen order is kept
            beside the pattern for similar events.
        own: ``[lo, hi)`` in µs; only matches decided in it are given. ``events`` must hold
            ``pattern.source_range(*own)``. In a ranked pattern, only these matches compete.
        backend: ``numpy``; ``compiled``, which falls back on NumPy where there is no code for a condition; or ``auto``,
            the one that is estimated to finish first. Both give the same matches and counts; ``statistics`` says
            which was used.
        statistics: filled while matches are drawn.
        options: options that are rarely needed.

    Raises:
        DefinitionError: columns are of kinds to which the conditions cannot be applied.
        LimitExceeded: a limit of the front matter was exceeded.
        InputError: missing columns, null ts, a ts that is not within ±2^62 ticks.
        UsageError: ``order`` or ``rates`` do not fit the pattern, or there are too many parts for their span of time.
    """
    statistics = Statistics() if statistics is None else statistics
    options = SearchOptions() if options is None else options
    if pattern.extras.ranking is not None and not options.unranked:
        best = best_of(pattern, events, order=order, own=own, backend=backend, statistics=statistics, options=options)
        statistics.lists += best.counts()
        found = ranked(best)
    else:
        ask = _asked(pattern, events, statistics, options, order=order, own=own, backend=backend)
        found = ask.found(own)
        if options.unranked:
            yield from found
            return
    per_day: dict[int, int] = {}
    for batch in found:
        count_days(pattern, batch, per_day)
        statistics.matches += batch.n
        yield batch


def best_of(
    pattern: Pattern,
    events: pa.Table,
    *,
    order: Sequence[str] | None = None,
    own: tuple[int, int] | None = None,
    backend: str = "auto",
    statistics: Statistics | None = None,
    options: SearchOptions | None = None,
) -> Best:
    """The matches of a ranked pattern that can be among its best.

    Args:
        as in ``find``.

    Raises:
        as ``find``; UsageError: the strategy that is asked for is not allowed.
        InputError: a criterion of a product is not from 0 to 1.
    """
    statistics = Statistics() if statistics is None else statistics
    options = SearchOptions() if options is None else options
    ask = _asked(pattern, events, statistics, options, order=order, own=own, backend=backend)
    batches, thresholds, statistics.best = ask.best(own)
    best = Best(pattern, events, options.trailing, thresholds, statistics.best, options.by_day)
    best.add_all(batches)
    return best


def _asked(
    pattern: Pattern,
    events: pa.Table,
    statistics: Statistics,
    options: SearchOptions,
    *,
    order: Sequence[str] | None,
    own: tuple[int, int] | None,
    backend: str,
) -> _Asked:
    """The request to a search, after checking that it is possible."""
    keep_freed_memory()
    check_asked(pattern, options, order, backend)
    check_kinds(pattern, events)
    clock: Clock | None = None
    pattern = as_asked(pattern, options)
    if options.ties_in_order:
        if own is not None or options.parts is not None:
            raise UnfitOption.ties_in_part()
        pattern, clock, places = in_total_order(pattern, events)
        options = replace(options, parts=places)
    elif options.parts is None and not pattern.neighbours and not pattern.extras.keep:
        parts = parts_by_key(pattern, events)
        options = options if parts is None else replace(options, parts=parts)
    rates = None if options.rates is None else tuple(sorted(options.rates.items()))
    given = [order] * len(pattern.branches) if options.orders is None else options.orders
    requests = [OrderRequest(None if one is None else tuple(one), rates, options.by, backend) for one in given]
    return _Asked(pattern, events, statistics, requests, options, clock, used_rows(events, options.used))


@dataclass(frozen=True)
class _Asked:
    """The request to a search, regardless of the range of decision times.

    Args:
        pattern: the pattern.
        events: the events table.
        statistics: what is counted.
        requests: how the order of each branch is to be chosen.
        options: the options.
        clock: how times are moved, if not because of the parts.
        used: which events are already used up, or None.
    """

    pattern: Pattern
    events: pa.Table
    statistics: Statistics
    requests: Sequence[OrderRequest]
    options: SearchOptions
    clock: Clock | None = None
    used: np.ndarray | None = None
    memo: Memo = field(default_factory=Memo, init=False)

    def data(self, own: tuple[int, int] | None) -> Dataset:
        """The events that the matches decided in ``own`` need."""
        found = dataset(self.pattern, self.events, own, parts=self.options.parts, clock=self.clock, others=True)
        options = self.options
        found.calls = Calls.of(self.events, options.memo, self.memo, self.statistics.called, options.asks)
        return found

    def run(self, own: tuple[int, int] | None) -> Run:
        """One search of what is decided in ``own``."""
        return Run(self.pattern, self.data(own), own, self.statistics, self.options.mode in ("auto", "S"))

    def found(self, own: tuple[int, int] | None) -> Iterator[MatchBatch]:
        """All matches that the pattern wants, ranked or not."""
        if self.pattern.extras.policy is not None:
            return self.selected(self.pattern.extras.policy, own)
        return self.blocks(own) if self.pattern.neighbours or self.pattern.extras.keep else self.all(own)

    def best(self, own: tuple[int, int] | None) -> tuple[Iterator[MatchBatch], Thresholds | None, BestSearch]:
        """Matches of a ranked pattern, including the best; the thresholds by which they are found; and how it is done.

        Raises:
            UsageError: the strategy that is asked for is not allowed.
        """
        options, pattern = self.options, self.pattern
        able = strategies(pattern, ties_in_order=options.ties_in_order, trailing=options.trailing)
        asked = Asked(options.strategy, self.requests[0].backend, options.by_day)
        found = choose_strategy(pattern, self.events, able, asked, lambda: self.with_scans(own))
        if found.batches is not None:
            return found.batches, None, found.search
        batches = self.found(own) if found.run is None else self.each(found.run)
        return batches, found.thresholds, found.search

    def with_scans(self, own: tuple[int, int] | None) -> Run:
        """One search of what is decided in ``own``, with the scans of all branches."""
        run = self.run(own)
        run.scans += [self.scan(branch, run.data, own) for branch in self.pattern.branches]
        return run

    def all(self, own: tuple[int, int] | None) -> Iterator[MatchBatch]:
        """The matches of all branches, each once; if kernels choose among a branch's matches, only the chosen ones."""
        yield from self.each(self.run(own))

    def each(self, run: Run) -> Iterator[MatchBatch]:
        """The same for a search that has begun."""
        branches = self.pattern.branches
        for number, branch in enumerate(branches):
            doubles = [k for k, earlier in enumerate(branches[:number]) if same_names(earlier, branch)]
            yield from run.found(self.ready(run, number), doubles)

    def ready(self, run: Run, number: int) -> Ready:
        """A branch ready to be searched; branches must be made ready in order."""
        if number >= len(run.scans):
            run.scans.append(self.scan(self.pattern.branches[number], run.data, run.own))
        return run.ready(number, self.requests[number])

    def selected(self, policy: Policy, own: tuple[int, int] | None) -> Iterator[MatchBatch]:
        """The matches that a policy wants, in the order in which they are published.

        Raises:
            UsageError: the mode that is asked for is not possible.
        """
        pattern, mode = self.pattern, self.options.mode
        able = [kernel_choice(pattern, branch) for branch in pattern.branches]
        unable = [one.why for one in able if one and not one.wanted]
        if mode == "S" and unable:
            raise UnfitOption.mode("S", unable[0])
        names = tuple(name.name for name in pattern.names)
        if len(pattern.branches) == 1:
            run = self.run(own)
            ready = self.ready(run, 0)
            found = run.found(ready, [])
            if ready.chooses:
                self.statistics.modes.append(("S", able[0].why if able[0] else ""))
                yield from found if run.data.clock is None else Selection(policy, names, self.events).chosen(found)
                return
        else:
            found = self.all(own)
        selection = Selection(policy, names, self.events)
        if policy.consumes and mode != "P":
            yield from selection.in_blocks(found, self.all, (-FAR, FAR) if own is None else own, halve=mode == "B")
        else:
            yield from selection.all(found)
        self.statistics.modes.append(("B" if selection.blocks > 1 else "P", why_not(able, mode)))

    def blocks(self, own: tuple[int, int] | None) -> Iterator[MatchBatch]:
        """The matches of neighbours, or the largest matches, in each block of events."""
        most = _EVENTS_PER_ROW * self.options.block_rows
        for number, block in enumerate(blocks(self.pattern, self.events, self.options.parts, most)):
            statistics, options = Statistics(), replace(self.options, parts=block.parts)
            clock = self.clock or block.clock
            ask = replace(self, events=block.events, statistics=statistics, options=options, clock=clock)
            finder = Finder(self.pattern, block.events, statistics, ask.data, ask.branch, options.block_rows)
            for batch in finder.run(own):
                yield batch if block.rows is None else batch.of_rows(block.rows)
            self.statistics.add(statistics, first=not number)

    def branch(self, number: int, data: Dataset, own: tuple[int, int] | None) -> Iterator[MatchBatch]:
        """The matches of one branch, including those that other branches have too."""
        scans = [self.scan(branch, data, own) for branch in self.pattern.branches[: number + 1]]
        run = Run(self.pattern, data, own, self.statistics, scans=scans)
        yield from run.found(run.ready(number, self.requests[number]), [])

    def scan(self, branch: Branch, data: Dataset, own: tuple[int, int] | None) -> Scan:
        """What a branch looks through."""
        window = self.pattern.window_us
        candidates = candidates_of(self.pattern, branch, data, own)
        if self.used is not None:
            for name in branch.positive:
                free = ~self.used[data.rows_of(candidates[name].rows)]
                candidates[name] = Candidates(data, candidates[name].rows[free])
        candidates = within_reach(branch, candidates, window)
        return Scan(data, candidates, window, self.options.block_rows)


def dataset(
    pattern: Pattern,
    events: pa.Table,
    own: tuple[int, int] | None = None,
    *,
    by_id: bool | None = None,
    parts: np.ndarray | None = None,
    clock: Clock | None = None,
    others: bool = False,
) -> Dataset:
    """The events that ``pattern`` may use for the matches decided in ``own``, with the columns that it mentions.

    ``by_id`` says whether ties of ts are in the order of the ids; by default they are where that order can show (in
    sums over sets, and in E_neg). ``parts`` are those of ``find``, ``clock`` moves their times, and with ``others``,
    events of other types may stay.

    Raises:
        InputError: missing columns, null ts, a ts that is not within ±2^62 ticks.
        UsageError: there are too many parts for their span of time.
    """
    events = add_computed(events, pattern.extras.computed, pattern.key, pattern.strict)
    lo, hi = (None, None) if own is None else pattern.read_range(*own)
    # Neighbours are sorted among themselves, which is cheaper than sorting the events of all keys.
    shown = (b.collected or b.stream is None and (b.sets or b.negated or b.until) for b in pattern.branches)
    in_order = any(shown) if by_id is None else by_id
    types, attributes, words = pattern.event_types, pattern.searched, pattern.words
    by_seq, others = pattern.extras.policy is not None, others and not pattern.neighbours
    wanted = Wanted(types, attributes, words, lo, hi, in_order, pattern.strict, pattern.in_stream, by_seq, others)
    apart = None
    if parts is not None and len(parts):
        apart = clock or Clock.of_parts(ticks_of(events["ts"], "ts"), parts, pattern.window_us), parts
    data = Dataset(events, wanted, apart)
    if len(data.ts):
        beyond = [tick for tick in data.ends if not -MOST_TICKS < tick < MOST_TICKS]
        if beyond:
            raise UnfitTimes.too_far(MOST_TICKS, beyond[0])
    return data


def check_kinds(pattern: Pattern, events: pa.Table) -> None:
    """Check the conditions against the kinds of the events' columns (DefinitionError)."""
    schema, checked = events.schema, pattern.memory.recall("schema", pa.Schema)
    if checked is not None and checked.equals(schema):
        return
    types = tuple(schema.field(attr).type if attr in schema.names else None for attr in pattern.mentioned)
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
    pattern.memory.keep("schema", schema)


def candidates_of(
    pattern: Pattern, branch: Branch, data: Dataset, own: tuple[int, int] | None = None
) -> dict[str, Candidates]:
    """The events that each name of ``branch`` accepts by its own conditions, limited to those that ``own`` allows."""
    found: dict[str, Candidates] = {}
    of_type: dict[str, Candidates] = {}
    for name, clauses in routing(branch).items():
        kind = branch.types[name]
        if kind not in of_type:
            of_type[kind] = Candidates(data, data.marks(kind))
        candidates = of_type[kind]
        if not clauses and own is None:
            found[name] = candidates
            continue
        tests = [View.of_all(data, name, candidates).holds(clause, frozenset()) for clause in clauses]
        if own is not None and decides(pattern, branch, name):
            ts = data.real(candidates.ts)
            early = pattern.window_us if pattern.open_right else 0
            tests.append(ts >= own[0] - early)
            if pattern.open_right:
                tests.append(ts < own[1] - early)
        keep = np.logical_and.reduce(tests) if tests else np.ones(1, bool)
        found[name] = candidates if keep.all() else Candidates(data, candidates.rows[keep])
    return found
