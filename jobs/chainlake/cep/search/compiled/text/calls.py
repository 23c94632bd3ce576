"""Functions of several events as code, whose results equal chainlake.cep.values.operations in every bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from chainlake.cep.language import ast
from chainlake.cep.search.compiled.text.code import NULL, Code, Writer
from chainlake.cep.search.compiled.text.errors import NotCompilable
from chainlake.cep.search.compiled.text.slots import Slots


class Maker(Protocol):
    """A maker of code for values."""

    slots: Slots

    def fresh(self) -> str:
        """A new local name."""

    def value(self, node: ast.Node, out: Writer) -> Code:
        """The value of ``node``."""

    def fitting(self, value: Code) -> Code:
        """The value, if its whole numbers cannot exceed 64 bits."""

    def as_float(self, value: Code) -> str:
        """The value as float64, NaN for null."""


#: From this value on, every double is a whole number.
_WHOLE = "4503599627370496.0"


def call(make: Maker, node: ast.Call, out: Writer) -> Code:
    """The value of a function; statements that it needs go to ``out``.

    Raises:
        NotCompilable: there is no code for it.
    """
    write = _WRITERS.get(node.function)
    if write is None:
        raise NotCompilable.several_events(node.function)
    plain = node.args[:1] if node.function == "round" else node.args
    values = [make.value(arg, out) for arg in plain]
    if any(value.dtype == "0" for value in values):
        return NULL
    return write(make, node, values, out)


def _absolute(make: Maker, node: ast.Call, values: Sequence[Code], out: Writer) -> Code:
    return replace(make.fitting(values[0]), text=f"abs({values[0].text})")


def _seconds(make: Maker, node: ast.Call, values: Sequence[Code], out: Writer) -> Code:
    value = values[0]
    return value if value.kind == "number" else Code(f"({make.as_float(value)} / 1000000.0)", "f", "number")


def _square_root(make: Maker, node: ast.Call, values: Sequence[Code], out: Writer) -> Code:
    x, found = make.fresh(), make.fresh()
    out.put(f"{x} = {make.as_float(values[0])}")
    # The root of infinity is not a finite number.
    out.put(f"{found} = math.sqrt({x}) if {x} >= 0.0 and {x} - {x} == 0.0 else {make.slots.nan}")
    return Code(found, "f", "number")


def _floor(make: Maker, node: ast.Call, values: Sequence[Code], out: Writer) -> Code:
    value = values[0]
    if value.dtype == "i":
        return value
    x, found = make.fresh(), make.fresh()
    out.put(f"{x} = {value.text}")
    out.put(f"{found} = float(math.{node.function}({x})) if -{_WHOLE} < {x} and {x} < {_WHOLE} else {x}")
    return Code(found, "f", "number")


def _rounded(make: Maker, node: ast.Call, values: Sequence[Code], out: Writer) -> Code:
    value, digits = values[0], 0
    for arg in node.args[1:]:
        assert isinstance(arg, ast.Literal) and isinstance(arg.value, int), "the check lets whole numbers through"
        digits = arg.value
    if value.dtype == "i":
        if digits < 0:
            raise NotCompilable.rounded()
        return value
    x, scaled, whole, found = (make.fresh() for _ in range(4))
    unit = f"{10.0 ** abs(digits)!r}"
    there, back = ("*", "/") if digits >= 0 else ("/", "*")
    out.put(f"{x} = {value.text}", f"{scaled} = {x} {there} {unit}")
    out.open(f"if -{_WHOLE} < {scaled} and {scaled} < {_WHOLE}:")
    out.put(f"{whole} = float(int({scaled}))")
    out.open(f"if abs({scaled} - {whole}) >= 0.5:")
    out.put(f"{whole} = {whole} + (1.0 if {scaled} > 0.0 else -1.0)")
    out.close(2)
    out.put("else:", f"    {whole} = {scaled}")
    out.put(f"{found} = {whole} {back} {unit}", f"{found} = {found} if {found} - {found} == 0.0 else {x}")
    return Code(found, "f", "number")


def _extreme(make: Maker, node: ast.Call, values: Sequence[Code], out: Writer) -> Code:
    better = "<" if node.function == "least" else ">"
    found = values[0]
    for value in values[1:]:
        if found.dtype == value.dtype == "i":
            x, y, best = make.fresh(), make.fresh(), make.fresh()
            out.put(f"{x} = {found.text}", f"{y} = {value.text}", f"{best} = {x} if {x} {better} {y} else {y}")
            known = " and ".join(v for v in (found.valid, value.valid) if v) or None
            found = Code(best, "i", found.kind, known, found.size + value.size)
            continue
        if found.kind != "number":
            raise NotCompilable.parts_of_tick(node.function)
        x, y, best = make.fresh(), make.fresh(), make.fresh()
        out.put(f"{x} = {make.as_float(found)}", f"{y} = {make.as_float(value)}")
        out.put(f"{best} = {x} if {x} {better} {y} or {x} != {x} else {y}")
        found = Code(best, "f", "number")
    return found


def _modulo(make: Maker, node: ast.Call, values: Sequence[Code], out: Writer) -> Code:
    one, other = values
    x, y, found = make.fresh(), make.fresh(), make.fresh()
    if not one.dtype == other.dtype == "i":
        out.put(f"{x} = {make.as_float(one)}", f"{y} = {make.as_float(other)}")
        # If both are positive, Python's remainder equals C's.
        out.put(f"{found} = abs({x}) % abs({y}) if {y} != 0.0 and {x} - {x} == 0.0 else {make.slots.nan}")
        out.put(f"{found} = -{found} if {x} < 0.0 else {found}")
        return Code(found, "f", "number")
    one, other = make.fitting(one), make.fitting(other)
    out.put(f"{x} = {one.text}", f"{y} = {other.text}")
    out.put(f"{found} = abs({x}) % (abs({y}) if {y} != 0 else 1)", f"{found} = -{found} if {x} < 0 else {found}")
    known = " and ".join(v for v in (one.valid, other.valid, f"{y} != 0") if v)
    return Code(found, "i", "number", known, one.size)


_WRITERS: dict[str, Callable[[Maker, ast.Call, Sequence[Code], Writer], Code]] = {
    "abs": _absolute,
    "seconds": _seconds,
    "sqrt": _square_root,
    "floor": _floor,
    "ceil": _floor,
    "round": _rounded,
    "least": _extreme,
    "greatest": _extreme,
    "mod": _modulo,
}
