"""Which calls give the same value for the same events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainlake.cep.language import ast
from chainlake.cep.language.computed import rebuilt
from chainlake.cep.language.declared.function import Heavy


@dataclass(frozen=True)
class Shape:
    """How the pairs of a call are identified.

    Args:
        names: whose events they are: one name, or two; None if there are more, or sets.
        key: equal for calls that give the same value for the same events.
        either_way: whether the two events may be swapped.
    """

    names: tuple[str, ...] | None
    key: str
    either_way: bool

    @classmethod
    def of(cls, node: ast.Call, function: Heavy) -> Shape:
        names = _names(node)
        if node.aggregated or not 1 <= len(names) <= 2 or frozenset(names) != node.plain:
            return cls(None, node.written, False)
        key = _renamed(node, names).written
        half = len(node.args) // 2
        if not function.symmetric or len(node.args) != 2 * half:
            return cls(names, f"{function.name}: {key}", False)
        turned = ast.Call(node.function, (*node.args[half:], *node.args[:half]), node.at, node.own)
        same = len(names) == 2 and key == _renamed(turned, names[::-1]).written
        # Written in either way, it is one call.
        key, names = min((key, names), (_renamed(turned, _names(turned)).written, _names(turned)))
        return cls(names, f"{function.name}: {key}", same)


def _names(node: ast.Node) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ref.name for ref in node.walk() if isinstance(ref, ast.Ref)))


def _renamed(node: ast.Node, names: Sequence[str]) -> ast.Node:
    """The same node, with its events called 0 and 1."""
    if isinstance(node, ast.Ref):
        return ast.Ref(str(names.index(node.name)), node.attr)
    return rebuilt(node, lambda part: _renamed(part, names))
