"""The abstract syntax of a pattern. Nodes are immutable; places do not count when nodes are compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from chainlake.cep.language.source_text import NOWHERE, At

_AT = field(default=NOWHERE, compare=False, repr=False)
_NONE: frozenset[str] = frozenset()


class Placed:
    """What stands somewhere in a text."""

    at: At


@dataclass(frozen=True)
class Node(Placed):
    """What conditions and values share: the names they mention."""

    def parts(self) -> tuple[Node, ...]:
        """The nodes directly below."""
        return ()

    @cached_property
    def plain(self) -> frozenset[str]:
        """Names mentioned by a plain reference (``a.x``)."""
        return _NONE.union(*(part.plain for part in self.parts()))

    @cached_property
    def aggregated(self) -> frozenset[str]:
        """Names mentioned inside an aggregate (``AVG(b.x)``)."""
        return _NONE.union(*(part.aggregated for part in self.parts()))

    @cached_property
    def names(self) -> frozenset[str]:
        """All names mentioned."""
        return self.plain | self.aggregated

    @cached_property
    def written(self) -> str:
        """A text that no other node has; nodes are equal whose literals are (1, 1.0 and TRUE), their texts are not."""
        return repr(self)

    def walk(self) -> Iterator[Node]:
        """This node and all below it."""
        yield self
        for part in self.parts():
            yield from part.walk()


# ---- values


@dataclass(frozen=True)
class Literal(Node):
    """A number, string or boolean."""

    value: int | float | str | bool
    at: At = _AT

    @property
    def key(self) -> tuple[str, int | float | str | bool]:
        """The value with its type (``1`` and ``True`` are different literals)."""
        return type(self.value).__name__, self.value


@dataclass(frozen=True)
class Duration(Node):
    """``number unit`` as exact seconds; ``param unit`` while ``name`` is not resolved."""

    seconds: Fraction
    name: str | None = None
    at: At = _AT


@dataclass(frozen=True)
class Word(Node):
    """A bare identifier: a parameter, or the string of the same spelling."""

    name: str
    at: At = _AT


@dataclass(frozen=True)
class Ref(Node):
    """``name.attr``."""

    name: str
    attr: str
    at: At = _AT

    @cached_property
    def plain(self) -> frozenset[str]:
        return frozenset({self.name})


@dataclass(frozen=True)
class Aggregate(Node):
    """``AVG(name.attr)`` and the like; ``attr`` is None in ``COUNT(name)``."""

    function: str
    name: str
    attr: str | None
    at: At = _AT

    @cached_property
    def aggregated(self) -> frozenset[str]:
        return frozenset({self.name})


@dataclass(frozen=True)
class Call(Node):
    """A function of the registry applied to values."""

    function: str
    args: tuple[Node, ...]
    at: At = _AT

    def parts(self) -> tuple[Node, ...]:
        return self.args


@dataclass(frozen=True)
class Negative(Node):
    """``- value``."""

    of: Node
    at: At = _AT

    def parts(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True)
class Arithmetic(Node):
    """``left op right`` with op in ``+ - * /``."""

    op: str
    left: Node
    right: Node
    at: At = _AT

    def parts(self) -> tuple[Node, ...]:
        return self.left, self.right


# ---- conditions


@dataclass(frozen=True)
class Compare(Node):
    """``left op right`` with op in ``< <= > >= = !=``."""

    op: str
    left: Node
    right: Node
    at: At = _AT

    def parts(self) -> tuple[Node, ...]:
        return self.left, self.right


@dataclass(frozen=True)
class Member(Node):
    """``value [NOT] IN items``; ``items`` is a tuple of literals and words, or the name of a set."""

    value: Node
    negated: bool
    items: tuple[Node, ...] | str
    at: At = _AT

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The items, once names of sets and parameters are resolved."""
        return tuple(item for item in self.items if isinstance(item, Literal))

    def parts(self) -> tuple[Node, ...]:
        return (self.value,)


@dataclass(frozen=True)
class IsNull(Node):
    """``value IS [NOT] NULL``; true or false, never unknown."""

    value: Node
    negated: bool
    at: At = _AT

    def parts(self) -> tuple[Node, ...]:
        return (self.value,)


@dataclass(frozen=True)
class Const(Node):
    """``TRUE`` or ``FALSE`` as a condition."""

    value: bool
    at: At = _AT


@dataclass(frozen=True)
class Not(Node):
    """``NOT cond``."""

    of: Node
    at: At = _AT

    def parts(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True)
class All(Node):
    """``cond AND cond …``."""

    of: tuple[Node, ...]
    at: At = _AT

    def parts(self) -> tuple[Node, ...]:
        return self.of


@dataclass(frozen=True)
class Any(Node):
    """``cond OR cond …``."""

    of: tuple[Node, ...]
    at: At = _AT

    def parts(self) -> tuple[Node, ...]:
        return self.of


CONDITIONS = (Compare, Member, IsNull, Const, Not, All, Any)

# ---- structure


@dataclass(frozen=True)
class Event:
    """One event of the structure."""

    type: str
    name: str
    kleene: bool = False
    negated: bool = False
    at: At = _AT


@dataclass(frozen=True)
class Group:
    """``SEQ(…)`` or ``AND(…)``."""

    kind: str
    items: tuple[Event | Group, ...]
    at: At = _AT


Structure = Event | Group


def events_of(structure: Structure) -> Iterator[Event]:
    """The events of ``structure`` in the order written."""
    if isinstance(structure, Event):
        yield structure
    else:
        for item in structure.items:
            yield from events_of(item)


@dataclass(frozen=True)
class Branch:
    """One alternative: a structure with its own condition."""

    structure: Structure
    where: Node | None
    at: At = _AT


@dataclass(frozen=True)
class Within:
    """The window: ``value`` is a number or a parameter's name, ``unit`` None for the native unit."""

    value: int | float | str
    unit: str | None
    at: At = _AT


@dataclass(frozen=True)
class Query:
    """A whole query."""

    branches: tuple[Branch, ...]
    where: Node | None
    within: Within
