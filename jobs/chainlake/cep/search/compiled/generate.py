"""Makes the source of a plan's kernel: one loop per name, and in the innermost one negated names and the output.

The kernel stops when its output is full, and continues from there when it is called again: every loop keeps its place
in the state, and on the way back into the loops (``resume``) nothing is tested or counted twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.events.clock import Clock
from chainlake.cep.language.normal_form import Clause
from chainlake.cep.plan.sizes import most_usable
from chainlake.cep.plan.steps import Forbidden, Plan, Scope, Step
from chainlake.cep.search.bounding.thresholds import Bounds
from chainlake.cep.search.compiled.best import Best, Wanted
from chainlake.cep.search.compiled.bounded import Bounded
from chainlake.cep.search.compiled.lists.listed import Listed
from chainlake.cep.search.compiled.lists.nearest import Nearest
from chainlake.cep.search.compiled.lists.pairs import Pairs
from chainlake.cep.search.compiled.lists.scopes import Scopes
from chainlake.cep.search.compiled.lists.skip import LoopPlan
from chainlake.cep.search.compiled.output import Output
from chainlake.cep.search.compiled.sets import Sets
from chainlake.cep.search.compiled.text import slots as state
from chainlake.cep.search.compiled.text.code import Writer
from chainlake.cep.search.compiled.text.expressions import Expressions
from chainlake.cep.search.compiled.text.facts import Facts
from chainlake.cep.search.compiled.text.slots import Slots


@dataclass(frozen=True)
class Limits:
    """The limits of a pattern's matches, whatever the events.

    Args:
        window: in ticks.
        by_start: whether matches are decided at start + window.
        members: largest number of members of a set.
    """

    window: int
    by_start: bool
    members: int


class Generator:
    """Makes the kernel of one branch.

    Args:
        plan: the branch's plan.
        facts: what may be assumed about the events.
        limits: the pattern's own.
        loops: how its loops are run.
        wanted: which matches it chooses; None for all. The plan binds their last event first.
        bounds: the bounds by which partial matches are compared with thresholds; None for no such comparison.
    """

    def __init__(
        self,
        plan: Plan,
        facts: Facts,
        limits: Limits,
        loops: LoopPlan,
        wanted: Wanted | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self.plan, self.by_start = plan, limits.by_start
        self.skips, self.lists, self.searches, self.pairing = loops.skips, loops.lists, loops.searches, loops.pairing
        self.slots = Slots()
        self.make = Expressions(self.slots, facts, loops.limited)
        self.scopes = Scopes(plan.branch, limits.window, self.make)
        self.out = Writer()
        self.places: list[tuple[str, str]] = []
        self.kept: list[str] = []
        #: steps whose lists are made before the preceding step binds anything
        self.ahead: set[int] = set()
        self.window = self.slots.number(limits.window, "window")
        self.capacity = self.slots.number(0, "capacity")
        self.flat_capacity = self.slots.number(0, "flat")
        self.limits = limits
        self.own = self.slots.number(0, "own from"), self.slots.number(0, "own to")
        self.clock: tuple[str, str] | None = None
        if facts.of("moved", lambda scan: scan.data.clock is not None):
            base = self.slots.number_of(False, lambda scan: _clock_of(scan).base, "base")
            self.clock = base, self.slots.number_of(False, lambda scan: _clock_of(scan).period, "period")
        accumulates = wanted is not None and wanted.select == "accumulate"
        self.output = self._output(frozenset(plan.order) if accumulates else plan.branch.kleene)
        self.best = None if wanted is None else Best(self, wanted)
        self.bounded = None if bounds is None else Bounded(self, bounds)

    def source(self) -> str:
        """The source of the function ``kernel(F, I, B, J, kf, ki, st)``; see ``slots`` for its arguments."""
        self._level(0)
        body = self.out.lines
        head = Writer()
        head.put(*self.slots.header)
        head.put("n = 0", "E = 0", "EN = 0", "EP = 0", "T = 0", f"resume = st[{state.STATUS}]")
        head.put(*(f"{self.written(name)} = 0" for name in self.output.offsets), *self.kept)
        tail = Writer()
        self._return(tail, state.DONE)
        imports = ["import math", ""] if any("math." in line for line in body) else []
        return "\n".join([*imports, "def kernel(F, I, B, J, kf, ki, st):", *head.lines, *body, *tail.lines]) + "\n"

    @property
    def backward(self) -> bool:
        """Whether the events of a loop are bound from the last to the first."""
        return self.best is not None and self.best.backward

    def _output(self, kleene: frozenset[str]) -> Output:
        slots = self.slots
        names = self.plan.order
        return Output(
            slots.array("i", None, "start"),
            slots.array("i", None, "end"),
            {name: slots.array("j", None, ("rows", name)) for name in names},
            {name: slots.array("i", None, ("offsets", name)) for name in names if name in kleene},
            {name: slots.state() for name in names if name in kleene},
            {name: slots.array("i", None, ("map", name)) for name in names},
        )

    # ---- steps

    def _level(self, number: int) -> None:
        step = self.plan.steps[number]
        if self.best and not number:
            self.best.write(step)
        elif step.kleene:
            Sets(self, step, number).write()
        elif self.pairing and number == self.pairing.number - 1:
            Pairs(self, self.pairing).write()
        else:
            self._events(step, number)

    def enter(self, step: Step, number: int) -> None:
        """Write what follows once the event or set of a step has passed its clauses."""
        out = self.out
        last = number == len(self.plan.steps) - 1
        if last and not self.best:
            self._room()
        if self.bounded:
            if not last:
                out.open("if resume == 0:")
            self.bounded.write(step, number)
            out.close(0 if last else 1)
        if step.forbidden:
            if not last:
                out.open("if resume == 0:")
            for forbidden in step.forbidden:
                self._forbidden(forbidden)
            out.close(0 if last else 1)
        if last and self.best:
            self.best.keep()
        elif last:
            self._emit()
        else:
            self._level(number + 1)

    def _events(self, step: Step, number: int) -> None:
        out, make, name = self.out, self.make, step.name
        listed = Listed(self, step, number) if number in self.lists else None
        searched = number in self.searches
        assert listed or searched or not step.clauses, f"the conditions of {name} would not be tested"
        p, q, lo, hi = (f"{letter}{number}" for letter in ("p", "q", "lo", "hi"))
        self.count(step)
        if number:
            self.scopes.code(name, step.scope, lo, hi, out)
            if self.best:
                self.best.limit(name, lo, hi)
            out.put(f"if {hi} <= {lo}:", "    continue")
        else:
            out.put(f"{lo} = 0", f"{hi} = {self.bounded.bound_slots.sizes[0] if self.bounded else self.size(name)}")
        promising = self.bounded is not None and not number
        apart = self.apart_from(step.scope, name)
        if searched and self.best:
            out.put(f"E += {hi} - {lo}")
            Nearest(self, step, number, self.searches[number], self.best).write(apart)
            return
        place = self.slots.state()
        self.places.append((place, f"g{number}" if listed or promising else q))
        out.put("if resume != 0:", f"    {p} = {place}")
        out.open("else:")
        if not self.is_limited(step):
            out.put(f"E += {hi} - {lo}")
        for x in apart:
            out.put(f"if {x} >= {lo} and {x} < {hi}:", "    E -= 1")
        if listed:
            listed.write()
            if self.best:
                self.best.note_dead_end(number, listed.count)
            out.put(f"{p} = 0")
        else:
            out.put(f"{p} = {lo}", f"T += {hi} - {lo}")
        out.close()
        closed = out.depth
        if listed:
            listed.open_loop(lo, hi)
        else:
            out.open(f"while {p} < {hi}:")
            if self.bounded is not None and promising:
                out.put(f"g{number} = {p}", f"{q} = {self.bounded.bound_slots.order}[{p}]", f"{p} += 1")
            else:
                out.put(f"{q} = {lo} + {hi} - 1 - {p}" if self.backward else f"{q} = {p}", f"{p} += 1")
        make.singles[name] = q
        self.scopes.bind(name, q, q)
        for x in apart:
            out.put(f"if {q} == {x}:", "    continue")
        if self.best:
            for test in [] if listed else self.useful(name, q):
                out.put(f"if not {test}:", "    continue")
            self.best.prune(name, in_order=number not in self.skips)
        elif number < len(self.plan.steps) - 1:
            self.bind(name, number)
        self.forget_lists(number)
        self.enter(step, number)
        out.depth = closed

    def bind(self, name: str, number: int) -> None:
        """Bind the event of a step whose loop contains other loops; its position is known.

        Row and time are looked up once here for all matches below, since the writes of matches would make the compiler
        read them again.
        """
        q = f"q{number}"
        self.make.singles[name] = q
        self.scopes.bind(name, q, q)
        self.out.put(f"r{number} = {self.output.maps[name]}[{q}]", f"x{number} = {self.scopes.ticks(name)}[{q}]")
        self.scopes.moments[name] = f"x{number}"

    def is_limited(self, step: Step) -> bool:
        """Whether some of a step's candidates are left out, and are counted by ``count``."""
        # A search that chooses counts evaluations only of the candidates that are left.
        return step.name in self.make.limited and not self.best

    def count(self, step: Step) -> None:
        """Count the evaluations of a step that leaves some candidates out; continue with the next if there are none."""
        if self.is_limited(step):
            first, last = self.make.fresh(), self.make.fresh()
            self.scopes.counted(step.name, step.scope, first, last, self.out)
            self.out.put(f"if {last} <= {first}:", "    continue", "if resume == 0:", f"    E += {last} - {first}")

    def forget_lists(self, number: int) -> None:
        """Mark the lists that belong to the event of a step to be made again."""
        for other, key in self.lists.items():
            if key == number and key < other - 1:
                self.out.put("if resume == 0:", f"    v{other} = 0")

    def useful(self, name: str, position: str) -> list[str]:
        """Tests that an event passes if it may be part of a wanted match; none if all matches are wanted."""
        return self.best.useful(name, position) if self.best else []

    def size(self, name: str) -> str:
        """How many candidates a name has."""
        return self.slots.number_of(False, lambda scan: len(scan.candidates[name]), ("size", name))

    def apart_from(self, scope: Scope, name: str) -> list[str]:
        """Locals with the positions, among the candidates of ``name``, of single events that it must differ from."""
        found = []
        for other in scope.apart_from:
            if other in self.make.singles:
                found.append(self.make.fresh())
                self.out.put(f"{found[-1]} = {self.scopes.same(other, name)}[{self.make.singles[other]}]")
        return found

    def not_in_sets(self, scope: Scope, name: str, position: str) -> None:
        """Continue with the next event if this one is a member of a set that it must differ from."""
        for other in scope.apart_from:
            if other in self.make.groups and other not in self.make.singles:
                group, hit, number = self.make.groups[other], self.make.fresh(), self.make.fresh()
                self.out.put(f"{hit} = False", f"{number} = 0")
                self.out.open(f"while {number} <= {group.depth}:")
                self.out.put(
                    f"if {self.scopes.same(other, name)}[{group.position(number)}] == {position}:",
                    f"    {hit} = True",
                    f"{number} += 1",
                )
                self.out.close()
                self.out.put(f"if {hit}:", "    continue")

    # ---- negated names

    def _forbidden(self, forbidden: Forbidden) -> None:
        out, make, name = self.out, self.make, forbidden.name
        scope = forbidden.scope.among(self.scopes.first)
        lo, hi, p, q, rejected = (make.fresh() for _ in range(5))
        self.scopes.code(name, scope, lo, hi, out)
        if not forbidden.clauses and not scope.apart_from:
            out.put(f"if {hi} > {lo}:", "    EN += 1", "    continue")
            return
        apart = self.apart_from(scope, name)
        prelude, body = Writer(), Writer()
        prelude.depth, body.depth = out.depth, out.depth + 1
        make.singles[name] = q
        if not make.groups:
            make.loop_over(name, prelude)
        for clause in forbidden.clauses:
            self._test(clause, body)
        make.loop_over(None, Writer())
        del make.singles[name]
        out.lines += prelude.lines
        out.put(f"{rejected} = False", f"{p} = {lo}")
        out.open(f"while {p} < {hi}:")
        out.put(f"{q} = {p}", f"{p} += 1")
        for x in apart:
            out.put(f"if {q} == {x}:", "    continue")
        self.not_in_sets(scope, name, q)
        out.put("EN += 1")
        out.lines += body.lines
        out.put(f"{rejected} = True", "break")
        out.close()
        out.put(f"if {rejected}:", "    continue")

    def _test(self, clause: Clause, body: Writer) -> None:
        test = self.make.clause(clause, body)
        body.put(f"if not {test}:", "    continue")

    # ---- output

    def written(self, name: str) -> str:
        """The local that counts the events written for a name that is bound to sets."""
        return f"w{self.plan.order.index(name)}"

    def _room(self) -> None:
        out = self.out
        full = [f"n >= {self.capacity}"]
        full += [
            f"{self.written(name)} + {self.make.groups[name].depth} >= {self.flat_capacity}"
            for name in self.output.offsets
        ]
        out.open(f"if {' or '.join(full)}:")
        out.put(*(f"{place} = {value}" for place, value in self.places))
        self._return(out, state.FULL)
        out.close()
        out.put("resume = 0")

    def return_full(self, out: Writer) -> None:
        """Stop until the output has been emptied."""
        self._return(out, state.FULL)

    def _return(self, out: Writer, status: int) -> None:
        out.put(
            f"st[{state.STATUS}] = {int(status == state.FULL)}",
            f"st[{state.FOUND}] = n",
            f"st[{state.EVALUATIONS}] += E",
            f"st[{state.EVALUATIONS_NEG}] += EN",
            f"st[{state.EVALUATIONS_PRE}] += EP",
            f"st[{state.TESTS}] += T",
            *(self.bounded.returned if self.bounded else []),
            *(f"{place} = {self.written(name)}" for name, place in self.output.sizes.items()),
            f"return {status}",
        )

    def most_usable(self, step: Step) -> str:
        """The slot that holds how many events of one window may be usable for the set of a step."""
        return self.slots.number(most_usable(step.size, self.limits.members), ("members", step.size))

    def too_many(self, size: str) -> None:
        """Stop, since a set has more usable events than the limit allows."""
        self.out.put(f"st[{state.TOO_MANY}] = {size}")
        self._return(self.out, state.LIMIT)

    def unless_owned(self, start: str, end: str, *otherwise: str) -> None:
        """Write statements for a match that is decided outside the owned range."""
        decision = f"{start} + {self.window}" if self.by_start else end
        if self.clock is not None:
            base, period = self.clock
            decision = f"{base} + ({decision}) % {period}"
        test = self.make.fresh()
        self.out.put(f"{test} = {decision}", f"if {test} < {self.own[0]} or {test} >= {self.own[1]}:")
        self.out.put(*(f"    {line}" for line in otherwise))

    def _emit(self) -> None:
        out, kleene = self.out, self.output.offsets
        self.scopes.time("first", "start", out)
        self.scopes.time("last", "end", out)
        self.unless_owned("start", "end", "continue")
        for name in self.plan.order:
            rows, table = self.output.rows[name], self.output.maps[name]
            if name not in kleene:
                early = name in self.scopes.moments
                found = f"r{self.plan.order.index(name)}" if early else f"{table}[{self.make.singles[name]}]"
                out.put(f"{rows}[n] = {found}")
                continue
            group, written, number = self.make.groups[name], self.written(name), self.make.fresh()
            out.put(f"{number} = 0")
            out.open(f"while {number} <= {group.depth}:")
            out.put(f"{rows}[{written}] = {table}[{group.position(number)}]", f"{written} += 1", f"{number} += 1")
            out.close()
            out.put(f"{kleene[name]}[n + 1] = {written}")
        out.put(f"{self.output.start}[n] = start", f"{self.output.end}[n] = end", "n += 1")


def _clock_of(scan: Scan) -> Clock:
    assert scan.data.clock is not None, "the facts say that times were moved"
    return scan.data.clock
