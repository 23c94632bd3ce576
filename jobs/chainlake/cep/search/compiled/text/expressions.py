"""Values and clauses as code: typed, three-valued, and equal to chainlake.cep.values.values in every bit.

Whatever depends on one event alone (``a.price * 1.01``, ``a.kind IN {…}``, a function of one name's attributes) is
computed by NumPy before the search and read from a column; the code has only what involves several names.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Clause
from chainlake.cep.search.compiled.text.calls import call
from chainlake.cep.search.compiled.text.code import NULL, Code, Writer
from chainlake.cep.search.compiled.text.errors import NotCompilable
from chainlake.cep.search.compiled.text.facts import Facts, Form, Size, form_in, form_of
from chainlake.cep.search.compiled.text.slots import Slots
from chainlake.cep.values.values import Value, result_kind

_OPS = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "==", "!=": "!="}


@dataclass
class Group:
    """A bound set in the code.

    Args:
        members: positions of the name's usable events.
        picked: the indices of the set's members in ``members``.
        depth: the number of the last entry of ``picked``.
        aggregates: the code of each aggregate.
    """

    members: str
    picked: str
    depth: str
    aggregates: dict[ast.Aggregate, Code] = field(default_factory=dict)

    def position(self, number: str) -> str:
        """The position of a member among the name's candidates."""
        return f"{self.members}[{self.picked}[{number}]]"


class Expressions:
    """Makes code for values and clauses.

    Args:
        slots: receives the columns and constants.
        facts: what may be assumed about the events.
        limited: the names for which only candidates that can pass are searched.
    """

    def __init__(self, slots: Slots, facts: Facts, limited: frozenset[str] = frozenset()) -> None:
        self.slots, self.facts, self.limited = slots, facts, limited
        #: for each name, the code of the position of its single event
        self.singles: dict[str, str] = {}
        #: for each name, its set
        self.groups: dict[str, Group] = {}
        #: while a loop over the candidates of one name is being written: that name, and the code before the loop
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
            return self.constant(lambda scan: scan.nothing.value(node), ("constant", node.written))
        if self.candidate is not None and self.candidate not in node.names:
            return self.before_loop(node)
        if len(node.names) == 1 and not node.aggregated:
            return self.column(next(iter(node.plain)), node)
        match node:
            case ast.Aggregate():
                return self.groups[node.name].aggregates[node]
            case ast.Negative(of):
                value = self.fitting(self.value(of, out))
                return replace(value, text=f"(-{value.text})")
            case ast.Arithmetic(op, left, right):
                return self.arithmetic(op, self.value(left, out), self.value(right, out), out)
            case ast.Call():
                return call(self, node, out)
            case ast.Case() | ast.ListAggregate():
                raise NotCompilable.case()
        raise TypeError(f"not a value: {node!r}")

    def before_loop(self, node: ast.Node) -> Code:
        """A value that is the same for all candidates of the loop."""
        key = node.written
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

    def constant(self, make: Callable[[Scan], Value], key: Hashable) -> Code:
        """One value for all events; it is an argument of the kernel."""
        form = self.facts.of(("form", key), lambda scan: form_of(make(scan)))
        if form.kind == "null":
            return NULL
        size = Size(key, lambda scan: _largest(make(scan)))
        if form.letter != "float" and not self.facts.fit((size,)):
            raise NotCompilable.large()
        floating = form.letter == "float"
        name = self.slots.number_of(floating, lambda scan: make(scan).values, ("number", form.letter, key))
        if form.letter == "bool":
            return Code(f"({name} != 0)", "b", form.kind)
        return Code(name, form.letter[0], form.kind, None, (size,))

    def column(self, name: str, node: ast.Node) -> Code:
        """A value of one event, computed for all candidates of its name."""
        form, key = self.form(name, node), (name, node.written)
        if form.kind == "null":
            return NULL
        if form.kind == "list":
            raise NotCompilable.a_list()
        if form.letter == "O":
            raise NotCompilable.large()
        if not form.is_array:
            return self.constant(lambda scan: scan.value(name, node), ("constant of", key))
        if isinstance(node, ast.Ref) and form.letter != "b" and not form.nullable:
            self.slots.reads(name, node.attr)
        slot = self.slots.array(form.letter, lambda scan: scan.value(name, node).values, ("value", key))
        text = f"{slot}[{self.singles[name]}]"
        valid = None
        if form.nullable:
            where = self.slots.array("b", lambda scan: valid_of(scan.value(name, node)), ("valid", key))
            valid = f"{where}[{self.singles[name]}] != 0"
        if form.letter == "b":
            text = f"({text} != 0)"
        size = Size(("largest", key), lambda scan: _largest(scan.value(name, node)))
        return Code(text, form.letter, form.kind, valid, (size,))

    def form(self, name: str, node: ast.Node) -> Form:
        """The form that the value of ``node`` has for the candidates of the one name that it mentions."""
        return self.facts.of(("form of", name, node.written), lambda scan: form_in(scan, name, node))

    def fitting(self, value: Code) -> Code:
        """The value, if its whole numbers cannot exceed 64 bits."""
        if value.dtype == "i" and not self.facts.fit(value.size):
            raise NotCompilable.growing()
        return value

    def arithmetic(self, op: str, left: Code, right: Code, out: Writer) -> Code:
        """As ``values.arithmetic``: whole numbers and ticks exactly, all else in doubles."""
        if "0" in (left.dtype, right.dtype):
            return NULL
        kind = result_kind(op, left.kind, right.kind)
        whole = left.dtype == right.dtype == "i"
        if op in "+-" and (whole or "number" not in (left.kind, right.kind)):
            both = " and ".join(v for v in (left.valid, right.valid) if v) or None
            sum_of = Code(f"({left.text} {op} {right.text})", "i" if whole else "f", kind, both)
            return self.fitting(replace(sum_of, size=left.size + right.size)) if whole else sum_of
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
            truth = self.slots.number_of(
                False, lambda scan: bool(scan.nothing.truth(literal)), ("truth", literal.written)
            )
            return f"({truth} != 0)"
        if len(literal.names) == 1 and not literal.aggregated:
            return self.known(literal)
        if isinstance(literal, ast.Member):
            return self.member(literal, out)
        if isinstance(literal, ast.IsNull):
            return self.null_test(literal, self.value(literal.value, out))
        if isinstance(literal, ast.Like):
            raise NotCompilable.text_test()
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
        literals = node.literals
        key = (node.written, value.kind)
        forms = self.facts.of(
            ("items", key), lambda scan: tuple(form_of(scan.nothing.literal(item.value)) for item in literals)
        )
        items = [(item, form) for item, form in zip(literals, forms, strict=True) if form.kind == value.kind]
        doubles = [item for item, form in items if value.dtype == "f" or form.letter == "float"]
        others = [item for item, form in items if value.dtype != "f" and form.letter != "float"]
        inside, number = self.fresh(), self.fresh()
        out.put(f"{inside} = False")
        for some, letter, convert in ((others, "i", "int"), (doubles, "f", "float")):
            if not some:
                continue
            listed = partial(_items, some, letter)
            slot = self.slots.array(letter, listed, ("items", convert, key))
            size = self.slots.number_of(False, partial(_size_of, listed), ("size", convert, key))
            out.put(f"{number} = 0")
            out.open(f"while {number} < {size}:")
            out.put(f"if {slot}[{number}] == {convert}({value.text}):", f"    {inside} = True", f"{number} += 1")
            out.close()
        known = [value.valid] if value.valid else []
        return _all([*known, *_not_nan(value), f"not {inside}" if node.negated else inside])

    def null_test(self, node: ast.IsNull, value: Code) -> str:
        """As ``values.not_null``, or the opposite."""
        known = "False" if value.dtype == "0" else _all([*([value.valid] if value.valid else []), *_not_nan(value)])
        return known if node.negated else f"(not ({known}))"

    def known(self, literal: ast.Node) -> str:
        """A condition on one event within a clause on several, read from a column of booleans."""
        name = next(iter(literal.plain))
        slot = self.slots.array("b", lambda scan: scan.truth(name, literal), ("truth", name, literal.written))
        return f"({slot}[{self.singles[name]}] != 0)"

    def clause(self, clause: Clause, out: Writer) -> str:
        """An expression that is true where ``clause`` is TRUE for every choice of members of sets.

        The truth values are those of docs/semantics.md#conditions.

        Args:
            clause: all its names are bound.
            out: receives the statements that it needs.
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


def valid_of(value: Value) -> np.ndarray:
    """Where a value is not null, by the mask that it has."""
    assert value.valid is not None, "the form says that there is one"
    return value.valid


def _largest(value: Value) -> int:
    """The largest absolute value of whole numbers."""
    if isinstance(value.values, np.ndarray):
        return max(-int(value.values.min(initial=0)), int(value.values.max(initial=0)))
    return abs(int(value.values))


def _items(items: Sequence[ast.Literal], letter: str, scan: Scan) -> np.ndarray:
    """The values of a set, each once."""
    values = [scan.nothing.literal(item.value).values for item in items]
    return np.unique(np.array(values, np.float64 if letter == "f" else np.int64))


def _size_of(make: Callable[[Scan], np.ndarray], scan: Scan) -> int:
    return len(make(scan))


def _not_nan(value: Code) -> list[str]:
    return [f"{value.text} == {value.text}"] if value.dtype == "f" else []


def _all(tests: list[str]) -> str:
    # All are evaluated, since an unpredictable branch costs more than it saves.
    return tests[0] if len(tests) == 1 else "(" + " & ".join(f"({test})" for test in tests) + ")" if tests else "True"


def _any(tests: list[str]) -> str:
    return tests[0] if len(tests) == 1 else "(" + " | ".join(f"({test})" for test in tests) + ")"
