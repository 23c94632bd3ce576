"""Runs in event order: the automata of the papers, one event at a time, with all costs (docs/automata.md#costs).

The kernel finds the same matches with the same evaluations much faster; these runs measure what only event order has
(peak instances, peak buffers) and compare evaluation strategies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from chainlake.cep.automata import eager, tree
from chainlake.cep.automata.automaton import Setting
from chainlake.cep.automata.chain import Chain
from chainlake.cep.automata.eager import Eager, is_sequence
from chainlake.cep.automata.meter import Costs, Meter
from chainlake.cep.automata.scalar import Bound, Conditions
from chainlake.cep.automata.tree import Tree
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.errors import UnfitEngine
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.completion import completion_of
from chainlake.cep.plan.steps import make_plan
from chainlake.cep.search.choosing.choice import OrderRequest, order_of
from chainlake.cep.search.choosing.reach import within_reach
from chainlake.cep.search.find import candidates_of, check_kinds, dataset
from chainlake.cep.search.keys import parts_by_key

ENGINES = ("eager", "chain", "tree")
#: How negated names are tested (docs/automata.md#negation).
NEGATIONS = ("first-chance", "post-processing")


@dataclass
class Outcome:
    """What a run found and what it cost.

    Args:
        costs: summed over the branches; peaks are those of all branches together.
        orders: binding order of each branch that a chain ran.
        bindings: each match as name to rows of the events table, each set in (ts, id) order.
        course: the running costs at regular intervals, if asked for.
    """

    costs: Costs
    orders: list[tuple[str, ...]]
    bindings: list[dict[str, tuple[int, ...]]] = field(repr=False)
    course: list[Costs] = field(default_factory=list, repr=False)

    def matches(self, pattern: Pattern, ids: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """The matches as mappings from names to ids; ``ids`` holds the event id of every row of the events table."""
        repeated = {name.name for name in pattern.names if name.kleene}
        for binding in self.bindings:
            yield {
                name: [ids[row] for row in rows] if name in repeated else ids[rows[0]] for name, rows in binding.items()
            }


def unfit_for(engine: str, pattern: Pattern) -> str | None:
    """Why an engine is not defined for a pattern, or None if it is."""
    for branch in pattern.branches:
        completion = completion_of(branch, pattern.extras.pause)
        unknown = {
            "SEQ STRICT": branch.stream is not None,
            "COLLECT": bool(branch.collected),
            "UNTIL": bool(branch.until),
            "PAUSE, but in a sequence of single events": completion.pause is not None,
            pattern.extras.keep: bool(pattern.extras.keep),
            "CONTEXT, SELECT, PICK and CONSUME": pattern.extras.policy is not None,
            "RANK BY": pattern.extras.ranking is not None,
        }
        for word, used in unknown.items():
            if used:
                return f"{word}: it is defined for the search only"
    reasons = {"eager": eager.unfit, "tree": tree.unfit}
    found = (reasons[engine](branch) for branch in pattern.branches if engine in reasons)
    return next((reason for reason in found if reason is not None), None)


class _Found:
    """The matches of all branches, each once.

    Args:
        twice: whether two branches can have the same match.
    """

    def __init__(self, twice: bool) -> None:
        self._twice = twice
        self._seen: set[tuple[tuple[str, tuple[int, ...]], ...]] = set()
        self._bindings: list[dict[str, tuple[int, ...]]] = []

    def accept(self, bound: Bound) -> None:
        """Take a match."""
        binding = {name: rows if isinstance(rows, tuple) else (rows,) for name, rows in sorted(bound.items())}
        if self._twice:
            key = tuple(binding.items())
            if key in self._seen:
                return
            self._seen.add(key)
        self._bindings.append(binding)

    def bindings(self, rows: Sequence[int]) -> list[dict[str, tuple[int, ...]]]:
        """The matches as rows of the given events; ``rows``: for each row that was searched, its row among these."""
        return [{name: tuple(rows[row] for row in each) for name, each in one.items()} for one in self._bindings]


def _check_asked(pattern: Pattern, engine: str, negation: str, order: Sequence[str] | None) -> None:
    """Refuse a run that is not possible."""
    for what, asked, known in (("engine", engine, ENGINES), ("way of negation", negation, NEGATIONS)):
        if asked not in known:
            raise UnfitEngine.unknown(what, asked, known)
    reason = unfit_for(engine, pattern)
    if reason is not None:
        raise UnfitEngine.undefined(engine, pattern.name, reason)
    if order is not None and engine != "chain":
        raise UnfitEngine.takes_no_order(engine)


def simulate(
    pattern: Pattern,
    events: pa.Table,
    *,
    engine: str = "chain",
    order: Sequence[str] | None = None,
    negation: str = "first-chance",
    every: int | None = None,
) -> Outcome:
    """Run a pattern over events in the order of (ts, id).

    Args:
        pattern: the pattern; the branches of OR run side by side.
        events: as for ``chainlake.cep.find``.
        engine: ``chain``, ``tree`` or ``eager``, which is the chain in the order of a sequence, and for AND the
            automaton with a state per set of names. An eager automaton has input buffers only for forbidden events.
        order: binding order of a chain; by default, the one that the kernel takes.
        negation: ``first-chance`` or ``post-processing``; the result is the same.
        every: record the running costs in ``course`` every this many events of the pattern's types.

    Raises:
        UsageError: engine or way of negation is unknown or not defined for the pattern, or the order is wrong.
        DefinitionError, InputError: as ``chainlake.cep.find``.
        LimitExceeded: more events of one window are usable for a set than ``kleene_members`` allows.
    """
    _check_asked(pattern, engine, negation, order)
    check_kinds(pattern, events)
    data = dataset(pattern, events, by_id=True)
    conditions, meter = Conditions(data), Meter()
    ts, parts = data.ts.tolist(), parts_by_key(pattern, events)
    of_rows = None if parts is None else data.pick(parts).tolist()
    found = _Found(len(pattern.branches) > 1)
    automata: list[Chain | Tree | Eager] = []
    orders = []
    for branch in pattern.branches:
        candidates = within_reach(branch, candidates_of(pattern, branch, data), pattern.window_us)
        stored = frozenset(branch.negated if engine == "eager" else branch.types)
        setting = Setting(branch, ts, pattern.window_us, candidates, conditions, meter, found.accept, stored, of_rows)
        if engine == "tree":
            automata.append(Tree(setting))
            continue
        if engine == "eager" and not is_sequence(branch):
            automata.append(Eager(setting))
            continue
        wanted = branch.positive if engine == "eager" else order
        request = OrderRequest(None if wanted is None else tuple(wanted))
        orders.append(order_of(pattern, branch, Scan(data, candidates, pattern.window_us), request)[0])
        plan = make_plan(branch, orders[-1])
        post = negation == "post-processing"
        automata.append(Chain(setting, plan, post=post, members=pattern.limits["kleene_members"]))
    course: list[Costs] = []
    for row in range(len(ts)):
        for automaton in automata:
            automaton.arrive(row)
        meter.rested()
        if every is not None and (row + 1) % every == 0:
            course.append(replace(meter.costs))
    for automaton in automata:
        automaton.finish()
    return Outcome(meter.costs, orders, found.bindings(data.rows.tolist()), course)
