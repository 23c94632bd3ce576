"""Values and clauses as code: typed, three-valued, and equal to chainlake.cep.events.values in every bit.

Whatever depends on one event alone (``a.price * 1.01``, ``a.kind IN {…}``, a function of one name's attributes) is
computed by NumPy before the search and read from a column; the code holds only what joins names.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from chainlake.cep.conditions.evaluate import Candidates, View
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.events.values import Value, result_kind
from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Clause
from chainlake.cep.search.compiled.slots import Slots

#: Whole numbers lie below this in size, or code in int64 may be wrong.
_TOO_LARGE = 2**63
_OPS = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "==", "!=": "!="}


class NotCompilable(Exception):
    """The plan holds something that the generator has no code for; the message says what."""


@dataclass(frozen=True)
class Code:
    """A value in the code.

    Args:
        text: an expression without side effects.
        dtype: ``f`` float64 (NaN is null), ``i`` int64, ``b`` bool, ``0`` null.
        kind: kind of the value (chainlake.cep.events.values).
        valid: an expression that is true where the value is not null; None if it always is (floats: but for NaN).
        size: of an int64, the largest that its absolute value can be.
    """

    text: str
    dtype: str
    kind: str
    valid: str | None = None
    size: int = _TOO_LARGE


NULL = Code("0", "0", "null")


@dataclass
class Group:
    """A bound set in the code.

    Args:
        members: positions of the name's usable events.
        picked: numbers of the set's members among them.
        depth: the number of the last entry of ``picked``.
        aggregates: (function, attribute) to its code.
    """

    members: str
    picked: str
    depth: str
    aggregates: dict[tuple[str, str | None], Code] = field(default_factory=dict)

    def position(self, number: str) -> str:
        """The position of a member among the name's candidates."""
        return f"{self.members}[{self.picked}[{number}]]"


class Writer:
    """Lines of code with indentation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1

    def put(self, *lines: str) -> None:
        """Add lines at the current depth."""
        self.lines += ["    " * self.depth + line for line in lines]

    def open(self, line: str) -> None:
        """Add a line and go one deeper."""
        self.put(line)
        self.depth += 1

    def close(self, levels: int = 1) -> None:
        """Go back."""
        self.depth -= levels


class Expressions:
    """Makes code of values and clauses.

    Args:
        slots: gets the columns and constants.
        data: the events.
        candidates: of every name.
    """

    def __init__(self, slots: Slots, data: Dataset, candidates: dict[str, Candidates]) -> None:
        self.slots, self.data, self.candidates = slots, data, candidates
        #: name to the code of the position of its single event
        self.singles: dict[str, str] = {}
        #: name to its set
        self.groups: dict[str, Group] = {}
        #: while the code of a loop over the candidates of one name is made: that name, and what comes before the loop
        self.candidate: str | None = None
        self.prelude = Writer()
        self._before: dict[str, Code] = {}
        self._numbered = 0

    def loop_over(self, name: str | None, prelude: Writer) -> None:
        """From now on, what does not depend on ``name`` is computed once in ``prelude``; None ends that."""
        self.candidate, self.prelude, self._before = name, prelude, {}

    def fresh(self) -> str:
        """A new local name."""
        self._numbered += 1
        return f"t{self._numbered}"

    # ---- values

    def value(self, node: ast.Node, out: Writer) -> Code:
        """The value of ``node``; statements that it needs go to ``out``."""
        if not node.names:
            return self.constant(View(self.data, 1, {}, {}).value(node), node)
        if self.candidate is not None and self.candidate not in node.names:
            return self.before_loop(node)
        if len(node.names) == 1 and not node.aggregated:
            return self.column(next(iter(node.plain)), node)
        match node:
            case ast.Aggregate(function, name, attr):
                return self.groups[name].aggregates[(function, attr)]
            case ast.Negative(of):
                value = _fitting(self.value(of, out))
                return replace(value, text=f"(-{value.text})")
            case ast.Arithmetic(op, left, right):
                return self.arithmetic(op, self.value(left, out), self.value(right, out), out)
            case ast.Call(function, (argument,)) if function.lower() == "abs":
                value = _fitting(self.value(argument, out))
                return value if value.dtype == "0" else replace(value, text=f"abs({value.text})")
            case ast.Call(function):
                raise NotCompilable(f"{function} of several events")
        raise TypeError(f"not a value: {node!r}")

    def before_loop(self, node: ast.Node) -> Code:
        """A value that is the same for all candidates of the loop."""
        key = repr(node)
        if key not in self._before:
            name, self.candidate = self.candidate, None
            found = self.value(node, self.prelude)
            self.candidate = name
            if found.dtype != "0":
                text, valid = self.fresh(), None
                self.prelude.put(f"{text} = {found.text}")
                if found.valid is not None:
                    valid = self.fresh()
                    self.prelude.put(f"{valid} = {found.valid}")
                found = replace(found, text=text, valid=valid)
            self._before[key] = found
        return self._before[key]

    def constant(self, value: Value, key: Any) -> Code:
        """A value without names; it is an argument of the kernel."""
        if value.kind == "null":
            return NULL
        size = 0 if isinstance(value.values, float) else abs(int(value.values))
        if size >= _TOO_LARGE:
            raise NotCompilable("whole numbers beyond 64 bits")
        name = self.slots.number(value.values, ("constant", type(value.values).__name__, repr(key)))
        if isinstance(value.values, bool):
            return Code(f"({name} != 0)", "b", value.kind)
        return Code(name, "f" if isinstance(value.values, float) else "i", value.kind, None, size)

    def column(self, name: str, node: ast.Node) -> Code:
        """A value of one event, computed for all candidates of its name."""
        value = self.of_candidates(name, node)
        if value.kind == "null":
            return NULL
        if not isinstance(value.values, np.ndarray):
            return self.constant(value, (name, node))
        slot = self.slots.array(value.values, ("value", name, repr(node)))
        text = f"{slot}[{self.singles[name]}]"
        valid = None
        if value.valid is not None:
            valid = f"{self.slots.array(value.valid, ('valid', name, repr(node)))}[{self.singles[name]}] != 0"
        if slot[0] == "b":
            text = f"({text} != 0)"
        size = _TOO_LARGE
        if value.values.dtype.kind == "i":
            size = max(-int(value.values.min(initial=0)), int(value.values.max(initial=0)))
        return Code(text, slot[0], value.kind, valid, size)

    def of_candidates(self, name: str, node: ast.Node) -> Value:
        """The value of ``node`` for every candidate of the one name that it mentions."""
        of = self.candidates[name]
        if isinstance(node, ast.Ref):
            found = of.column(node.attr)
        else:
            found = View.of_all(self.data, name, of).value(node)
        if found.kind == "list":
            raise NotCompilable("a list")
        if isinstance(found.values, np.ndarray) and found.values.dtype.kind == "O":
            raise NotCompilable("whole numbers beyond 64 bits")
        return found

    def arithmetic(self, op: str, left: Code, right: Code, out: Writer) -> Code:
        """As ``values.arithmetic``: whole numbers and ticks exactly, all else in double."""
        if "0" in (left.dtype, right.dtype):
            return NULL
        kind = result_kind(op, left.kind, right.kind)
        whole = left.dtype == right.dtype == "i"
        if op in "+-" and (whole or "number" not in (left.kind, right.kind)):
            both = " and ".join(v for v in (left.valid, right.valid) if v) or None
            sum_of = Code(f"({left.text} {op} {right.text})", "i" if whole else "f", kind, both)
            return _fitting(replace(sum_of, size=left.size + right.size)) if whole else sum_of
        x, y = self.as_float(left), self.as_float(right)
        if op == "/":
            top, below, result = self.fresh(), self.fresh(), self.fresh()
            out.put(f"{top} = {x}", f"{below} = {y}")
            out.put(f"{result} = {top} / {below} if {below} != 0.0 else {self.slots.nan}")
            return Code(result, "f", kind)
        return Code(f"({x} {op} {y})", "f", kind)

    def as_float(self, value: Code) -> str:
        """The value as float64, NaN for null."""
        text = value.text if value.dtype == "f" else f"float({value.text})"
        return text if value.valid is None else f"({text} if {value.valid} else {self.slots.nan})"

    # ---- conditions

    def truth(self, literal: ast.Node, out: Writer) -> str:
        """An expression that is true where ``literal`` is TRUE."""
        if isinstance(literal, ast.Const):
            return str(literal.value)
        if not literal.names:
            truth = bool(View(self.data, 1, {}, {}).truth(literal))
            return f"({self.slots.number(truth, ('truth', repr(literal)))} != 0)"
        if len(literal.names) == 1 and not literal.aggregated:
            return self.known(literal)
        if isinstance(literal, ast.Member):
            return self.member(literal, out)
        if isinstance(literal, ast.IsNull):
            return self.null_test(literal, self.value(literal.value, out))
        assert isinstance(literal, ast.Compare), literal
        return self.compare(literal, self.value(literal.left, out), self.value(literal.right, out))

    def compare(self, node: ast.Compare, left: Code, right: Code) -> str:
        """As ``values.compare``."""
        if "0" in (left.dtype, right.dtype):
            return "False"
        known = [v for v in (left.valid, right.valid) if v]
        if left.kind != right.kind:
            if node.op == "=":
                return "False"
            return _all([*known, *_not_nan(left), *_not_nan(right)])
        test = f"{left.text} {_OPS[node.op]} {right.text}"
        return _all([*known, test, *(_not_nan(left) + _not_nan(right) if node.op == "!=" else [])])

    def member(self, node: ast.Member, out: Writer) -> str:
        """As ``values.member``."""
        value = self.value(node.value, out)
        if value.dtype == "0":
            return "False"
        view = View(self.data, 1, {}, {})
        constants = [view.literal(item.value) for item in node.items if isinstance(item, ast.Literal)]
        items = [item.values for item in constants if item.kind == value.kind]
        doubles = [item for item in items if value.dtype == "f" or isinstance(item, float)]
        others = [item for item in items if value.dtype != "f" and not isinstance(item, float)]
        inside, number = self.fresh(), self.fresh()
        out.put(f"{inside} = False")
        for some, dtype, convert in ((others, np.int64, "int"), (doubles, np.float64, "float")):
            if not some:
                continue
            array = np.unique(np.array(some, dtype))
            slot = self.slots.array(array, ("items", convert, repr(node)))
            size = self.slots.number(len(array), ("size", convert, repr(node)))
            out.put(f"{number} = 0")
            out.open(f"while {number} < {size}:")
            out.put(f"if {slot}[{number}] == {convert}({value.text}):", f"    {inside} = True", f"{number} += 1")
            out.close()
        known = [value.valid] if value.valid else []
        return _all([*known, *_not_nan(value), f"not {inside}" if node.negated else inside])

    def null_test(self, node: ast.IsNull, value: Code) -> str:
        """As ``values.not_null``, or the opposite."""
        known = "False" if value.dtype == "0" else _all([*([value.valid] if value.valid else []), *_not_nan(value)])
        return known if node.negated else f"(not {known})"

    def known(self, literal: ast.Node) -> str:
        """A condition on one event within a clause on several: a column of truths."""
        name = next(iter(literal.plain))
        of = self.candidates[name]
        view = View.of_all(self.data, name, of)
        truth = np.broadcast_to(np.asarray(view.truth(literal), bool), (len(of),))
        return f"({self.slots.array(truth, ('truth', name, repr(literal)))}[{self.singles[name]}] != 0)"

    def clause(self, clause: Clause, out: Writer) -> str:
        """An expression that is true where ``clause`` is TRUE, for every choice of a member of a set (spec 1.7).

        Args:
            clause: all its names are bound.
            out: gets the statements.
        """
        everyone = sorted(clause.plain & (self.groups.keys() - self.singles.keys()))
        if not everyone:
            return _any([self.truth(literal, out) for literal in clause.literals])
        name = everyone[0]
        group = self.groups[name]
        good, number, position = self.fresh(), self.fresh(), self.fresh()
        out.put(f"{good} = True", f"{number} = 0")
        out.open(f"while {good} and {number} <= {group.depth}:")
        out.put(f"{position} = {group.position(number)}")
        self.singles[name] = position
        test = self.clause(clause, out)
        out.put(f"{good} = {test}", f"{number} += 1")
        del self.singles[name]
        out.close()
        return good


def _fitting(value: Code) -> Code:
    if value.dtype == "i" and value.size >= _TOO_LARGE:
        raise NotCompilable("whole numbers that may pass 64 bits")
    return value


def _not_nan(value: Code) -> list[str]:
    return [f"{value.text} == {value.text}"] if value.dtype == "f" else []


def _all(tests: list[str]) -> str:
    # All are looked at: a jump that goes either way costs more than what it saves.
    return tests[0] if len(tests) == 1 else "(" + " & ".join(f"({test})" for test in tests) + ")" if tests else "True"


def _any(tests: list[str]) -> str:
    return tests[0] if len(tests) == 1 else "(" + " | ".join(f"({test})" for test in tests) + ")"
