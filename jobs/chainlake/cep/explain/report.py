"""A compiled pattern in words and as a picture: normal form, chain automaton, what a run reads, when it decides."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from fractions import Fraction

import pyarrow as pa

from chainlake.cep.automata.edges import State, Test, states_of
from chainlake.cep.automata.simulate import ENGINES, NEGATIONS, Outcome, simulate, unfit_for
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.estimate.cost import Model
from chainlake.cep.estimate.selectivity import measure
from chainlake.cep.explain.parts import bounds, calls, completions, conjunction, in_units, neighbours, ranking
from chainlake.cep.language.computed import shown
from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.order import given_order
from chainlake.cep.plan.steps import Plan, make_plan
from chainlake.cep.search.choosing.backend import Decision, Estimate, decide
from chainlake.cep.search.choosing.choice import OrderRequest, order_of
from chainlake.cep.search.choosing.reach import within_reach
from chainlake.cep.search.compiled.generate import Limits
from chainlake.cep.search.compiled.run import Compiled
from chainlake.cep.search.find import candidates_of, check_kinds, dataset
from chainlake.cep.search.selection.modes import kernel_choice, mode_text
from chainlake.terminal import table_lines

_HOW = {
    "given": "as asked for",
    "declared": "from the stated rates",
    "estimated": "the cheapest by estimate on these events",
    "measured": "rarest first on these events",
    "written": "as written: a run estimates the cheapest one from its events",
}

#: Number of events in the first trial run, from which the length of the whole run is forecast.
_FIRST_TRIAL = 100


@dataclass(frozen=True)
class ChosenOrder:
    """The order in which a branch binds its names.

    Args:
        plan: the plan of that order.
        how: a key of ``_HOW``.
        estimates: estimated evaluations by order, cheapest first; empty without events.
        backend: what the search runs on, and why; None without events.
        mode: how the wanted matches are chosen, and why; None if all are wanted, and without events.
        asked: for each call, for about how many pairs it is made; empty without events.
    """

    plan: Plan
    how: str
    estimates: Mapping[str, float]
    backend: Decision | None = None
    mode: str | None = None
    asked: Mapping[str, float] = field(default_factory=dict)


def chosen_orders(
    pattern: Pattern, order: Sequence[str] | None = None, events: pa.Table | None = None
) -> list[ChosenOrder]:
    """The order of each branch, as a run would choose it.

    Args:
        pattern: the pattern.
        order: the binding order to use instead.
        events: what the run would read; without events, only stated rates can choose an order.

    Raises:
        UsageError: the order does not fit.
        DefinitionError, InputError: as ``chainlake.cep.find``.
    """
    if events is None:
        wanted = order if order is not None else pattern.declared_order()
        how = "given" if order is not None else "written" if wanted is None else "declared"
        return [ChosenOrder(make_plan(b, given_order(b, wanted or b.positive)), how, {}) for b in pattern.branches]
    check_kinds(pattern, events)
    data = dataset(pattern, events)
    found = []
    for branch in pattern.branches:
        candidates = within_reach(branch, candidates_of(pattern, branch, data), pattern.window_us)
        scan = Scan(data, candidates, pattern.window_us)
        able = kernel_choice(pattern, branch)
        selects = able.wanted if able is not None else None
        request = OrderRequest(
            None if order is None else tuple(order), first=selects.last if selects is not None else None
        )
        chosen, how, _ = order_of(pattern, branch, scan, request)
        model = measure(branch, data, candidates, pattern.window_us)
        plan = make_plan(branch, chosen)
        limits = Limits(pattern.window_us, pattern.open_right, pattern.limits["kleene_members"])
        decision = decide("auto", Compiled(scan, plan, limits, wanted=selects), Estimate.of(model, chosen))
        mode = mode_text(pattern, branch, decision.compiled is not None)
        found.append(ChosenOrder(plan, how, model.estimates([chosen]), decision, mode, _asked(model)))
    return found


def _asked(model: Model) -> dict[str, float]:
    """For how many pairs each call is made, if only cheap conditions rule out pairs."""
    of = ((call.written, clause) for clause in model.heavy for literal in clause.literals for call in literal.heavy)
    return {written: model.pairs(clause) for written, clause in of}


def explain(pattern: Pattern, choices: Sequence[ChosenOrder]) -> Iterator[str]:
    """The lines of the explanation: normal form, states and edges, read range, decision rule, orders."""
    yield f"{pattern.name}: {pattern.description or 'no description'}"
    if pattern.source:
        yield f"source    {pattern.source}"
    yield from bounds(pattern)
    yield from ranking(pattern)
    for one in pattern.histories:
        reach = in_units(Fraction(one.reach_us, 1_000_000))
        yield f"          and for {one.name} the values of {one.of} up to {reach} before them"
    key = pattern.partition_key
    parallel = (
        "by time only: no column links all names" if key is None else f"by {shown(key)}: equality links all names"
    )
    yield f"parallel  {parallel}"
    for number, (branch, choice) in enumerate(zip(pattern.branches, choices, strict=True), 1):
        yield ""
        yield f"branch {number} of {len(pattern.branches)}"
        yield from _normal_form(branch, choice.plan)
        yield from calls(branch, choice.asked)
        if branch.stream is not None:
            yield from neighbours(branch)
            continue
        yield f"  order     {', '.join(choice.plan.order)} ({_HOW[choice.how]})"
        for order, cost in choice.estimates.items():
            yield f"              {order}: about {cost:,.0f} evaluations"
        if choice.backend is not None:
            yield f"  backend   {choice.backend.backend}: {choice.backend.why}"
        if choice.mode is not None:
            yield f"  mode      {choice.mode}"
        for state in states_of(choice.plan):
            yield from _state(state, len(choice.plan.steps))


def _normal_form(branch: Branch, plan: Plan) -> Iterator[str]:
    names = [f"{n} {branch.types[n]}{'*' if n in branch.kleene else ''}" for n in branch.positive]
    yield f"  names     {', '.join(names)}"
    if branch.negated:
        yield f"  forbidden {', '.join(f'{n} {branch.types[n]}' for n in branch.negated)}"
    yield from completions(branch)
    yield f"  sequence  {', '.join(_pairs(branch)) or 'none: any order'}"
    for name, clauses in plan.routing.items():
        if clauses:
            yield f"  accepts   {name}: {conjunction(clauses)}"
    if plan.constant:
        yield f"  constant  {conjunction(plan.constant)}"


def _pairs(branch: Branch) -> Iterator[str]:
    """The pairs of ≺, without those that follow from others."""
    for later in branch.types:
        for earlier in branch.types:
            if earlier in branch.before[later] and not branch.after[earlier] & branch.before[later]:
                yield f"{earlier} < {later}"


def _state(state: State, states: int) -> Iterator[str]:
    target = "F" if state.number == states else f"q{state.number + 1}"
    verb = "iterate" if state.kleene else "take"
    places = "buffer and stream" if state.from_stream else "buffer"
    yield f"  q{state.number}  {verb} {state.name} -> {target}, from {places}, scope {_scope(state)}"
    if state.member_clauses:
        yield f"        each where {conjunction(state.member_clauses)}"
    if state.clauses:
        yield f"        where {conjunction(state.clauses)}"
    for test in state.tests:
        yield f"        forbids {test.name} in {_interval(test)}{_where(test.clauses)} -> R"
        if test.waits:
            yield "          and waits until the interval has passed"
    yield f"      store {', '.join(state.store) or 'nothing'}; ignore {', '.join(state.ignore)}"


def _scope(state: State) -> str:
    return f"({_among('max', state.after) or 'start'}, {_among('min', state.before) or 'finish'})"


def _interval(test: Test) -> str:
    low = f"({_among('max', test.after)}" if test.after else "[last event - window"
    high = f"{_among('min', test.before)})" if test.before else "first event + window]"
    return f"{low}, {high}"


def _where(clauses: Sequence[Clause]) -> str:
    return f" where {conjunction(clauses)}" if clauses else ""


def _among(which: str, names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{which} of {', '.join(names)}" if names else ""


def mermaid(choices: Sequence[ChosenOrder]) -> Iterator[str]:
    """The lines of a Mermaid flowchart of the chains; all branches begin in the same state and end in F or R."""
    yield "flowchart LR"
    for number, choice in enumerate(choices, 1):
        branch = f"b{number}" if len(choices) > 1 else ""
        if choice.plan.branch.stream is not None:
            yield from _in_a_row(choice.plan.branch, branch)
            continue
        states = states_of(choice.plan)
        for state in states:
            here = _node(branch, state.number)
            there = "F(((F)))" if state.number == len(states) else _node(branch, state.number + 1)
            verb = "iterate" if state.kleene else "take"
            taken = f"{verb} {state.name}{_where((*state.member_clauses, *state.clauses))}"
            if state.store:
                yield f"  {here} -- {_quoted('store ' + ', '.join(state.store))} --> {here}"
            yield f"  {here} -- {_quoted('ignore ' + ', '.join(state.ignore))} --> {here}"
            last = state.number == len(states)
            if last and state.tests:
                # F accepts at once, so tests made with the last name need a state before it.
                there = f"{branch}r((r))"
            yield f"  {here} -- {_quoted(taken)} --> {there}"
            if last and state.tests:
                yield f"  {there} -- {_quoted('no ' + ', no '.join(t.name for t in state.tests))} --> F(((F)))"
            for test in state.tests:
                yield f"  {there} -- {_quoted(f'{test.name} in {_interval(test)}{_where(test.clauses)}')} --> R(((R)))"


def _in_a_row(branch: Branch, prefix: str) -> Iterator[str]:
    """The edges of a branch of neighbours: each event is the next one of its stream."""
    for number, name in enumerate(branch.positive, 1):
        there = "F(((F)))" if number == len(branch.positive) else _node(prefix, number + 1)
        what = f"{'next' if number > 1 else 'take'} {name}"
        yield f"  {_node(prefix, number)} -- {_quoted(what)} --> {there}"
        if name in branch.kleene:
            yield f"  {there} -- {_quoted(f'next {name}')} --> {there}"


def _node(branch: str, number: int) -> str:
    return "q1((q1))" if number == 1 else f"{branch}q{number}((q{number}))"


def _quoted(text: str) -> str:
    """A Mermaid label, with entity codes for characters that mean something to its grammar or to HTML."""
    return '"' + re.sub(r"[\"<>&#|;]", lambda found: f"#{ord(found[0])};", text) + '"'


def beginning(events: pa.Table, first: int) -> pa.Table:
    """The ``first`` events in the order of (ts, id)."""
    return events.sort_by([("ts", "ascending"), ("event_id", "ascending")]).slice(0, first)


def _runs(pattern: Pattern) -> Iterator[tuple[str, str]]:
    """The engine and the way of negation of each run that is defined for a pattern."""
    negated = any(branch.negated for branch in pattern.branches)
    for engine in ENGINES:
        if unfit_for(engine, pattern) is None:
            yield from ((engine, negation) for negation in (NEGATIONS if negated else NEGATIONS[:1]))


def _run(pattern: Pattern, events: pa.Table, engine: str, order: Sequence[str] | None, negation: str) -> Outcome:
    return simulate(pattern, events, engine=engine, order=order if engine == "chain" else None, negation=negation)


def forecast(pattern: Pattern, events: pa.Table, order: Sequence[str] | None = None, enough: float = 0.2) -> float:
    """About how many seconds ``costs`` will take, judged by trial runs in the middle of the events.

    Args:
        pattern, events, order: as in ``costs``.
        enough: how many seconds a trial run must take to predict how long a run over all events takes.

    Raises:
        as ``simulate``.
    """
    ordered = events.sort_by([("ts", "ascending"), ("event_id", "ascending")])
    total = 0.0
    for engine, negation in _runs(pattern):
        size, took = _FIRST_TRIAL, 0.0
        while took < enough and size < len(ordered):
            began = time.perf_counter()
            _run(pattern, ordered.slice((len(ordered) - size) // 2, size), engine, order, negation)
            took, size = time.perf_counter() - began, 2 * size
        total += took * len(ordered) / (size / 2)
    return total


def costs(pattern: Pattern, events: pa.Table, order: Sequence[str] | None = None) -> Iterator[str]:
    """The lines of a table: what each engine costs on these events (docs/automata.md#costs).

    Args:
        pattern: the pattern.
        events: what the run reads.
        order: the binding order of the chain; None lets it choose.

    Raises:
        as ``simulate``.
    """
    head = ("engine", "E", "E_neg", "E_pre", "I_rest", "I_dfs", "B_in", "B_all", "states", "matches")
    rows: list[tuple[str, ...]] = []
    negated = any(branch.negated for branch in pattern.branches)
    for engine, negation in _runs(pattern):
        found = _run(pattern, events, engine, order, negation)
        numbers = (*astuple(found.costs), len(found.bindings))
        rows.append((f"{engine}, {negation}" if negated else engine, *(f"{n:,}" for n in numbers)))
    yield from table_lines(head, rows, range(1, len(head)))
    for engine in ENGINES:
        reason = unfit_for(engine, pattern)
        if reason is not None:
            yield f"{engine} is not defined for this pattern: {reason}"
