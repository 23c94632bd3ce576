"""Conditions and values. Nodes are immutable, and are compared without their places in the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from chainlake.cep.language.source_text import NOWHERE, At

if TYPE_CHECKING:
    from chainlake.cep.language.functions import Function

#: The place of a node in the text, which does not count when nodes are compared.
AT = field(default=NOWHERE, compare=False, repr=False)
_NONE: frozenset[str] = frozenset()


class Placed:
    """Something that has a place in a text."""

    at: At


@dataclass(frozen=True)
class Node(Placed):
    """What conditions and values share: the names that they mention."""

    def parts(self) -> tuple[Node, ...]:
        """The nodes directly below this one."""
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
    def heavy(self) -> tuple[Call, ...]:
        """The calls in it of functions of pairs, which are called with many pairs at a time."""
        return tuple(part for part in self.walk() if isinstance(part, Call) and part.own is not None)

    @cached_property
    def written(self) -> str:
        """A text that no other node has; nodes with equal literals (1, 1.0, TRUE) are equal, but their texts differ."""
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
    at: At = AT

    @property
    def key(self) -> tuple[str, int | float | str | bool]:
        """The value with its type (``1`` and ``True`` are different literals)."""
        return type(self.value).__name__, self.value


@dataclass(frozen=True)
class Duration(Node):
    """``number unit`` as exact seconds; ``param unit`` while ``name`` is not resolved."""

    seconds: Fraction
    name: str | None = None
    at: At = AT


@dataclass(frozen=True)
class Word(Node):
    """A bare identifier: a parameter, or the string of the same spelling."""

    name: str
    at: At = AT


@dataclass(frozen=True)
class Ref(Node):
    """``name.attr``.

    Args:
        name: the name.
        attr: the attribute, or a computed column.
        of: the expression of a computed column, for messages.
    """

    name: str
    attr: str
    at: At = AT
    of: Node | None = field(default=None, compare=False, repr=False)

    @cached_property
    def plain(self) -> frozenset[str]:
        return frozenset({self.name})


@dataclass(frozen=True)
class Aggregate(Node):
    """``AVG(name.attr)`` and other aggregates, over the set that is bound to a name.

    Args:
        function: its name in ``AGGREGATES``.
        name: the name.
        attr: the attribute; None in ``COUNT(name)``, and where ``of`` is aggregated.
        distinct: whether equal values count once (``COUNT`` only).
        share: for ``PERCENTILE``, from 0 to 1.
        of: a value of each member that is not a plain attribute, as in ``AVG(b.price * b.volume)``; ``attr`` is its
            column once it is computed.
    """

    function: str
    name: str
    attr: str | None
    at: At = AT
    distinct: bool = False
    share: float | None = None
    of: Node | None = None

    @cached_property
    def aggregated(self) -> frozenset[str]:
        return frozenset({self.name})


@dataclass(frozen=True)
class ListAggregate(Node):
    """``AVG(name.attr)`` and other aggregates, over the list that an attribute of one event holds.

    Args:
        function: as in ``Aggregate``.
        of: the list.
        type: the type of the name's events, for messages.
        distinct: whether equal values count once (``COUNT`` only).
        share: for ``PERCENTILE``, from 0 to 1.
    """

    function: str
    of: Ref | Prev
    type: str = field(default="", compare=False, repr=False)
    at: At = AT
    distinct: bool = False
    share: float | None = None

    def parts(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True)
class Call(Node):
    """A function applied to values.

    Args:
        function: its name in lower case.
        args: the values.
        own: the function, if the pattern declares it or if it is a function of pairs.
    """

    function: str
    args: tuple[Node, ...]
    at: At = AT
    own: Function | None = field(default=None, compare=False, repr=False)

    def parts(self) -> tuple[Node, ...]:
        return self.args


@dataclass(frozen=True)
class Prev(Node):
    """``PREV(name.attr, steps, gap)``: an attribute of an earlier event of the same type and key.

    Args:
        name: the name before whose event it is.
        attr: the attribute.
        steps: how many events earlier.
        gap: the longest time between neighbours on the way back: as written (a duration or a word), or ticks once
            resolved; None if the window or the pause is used instead.
        of_any_type: whether neighbours may have any type.
    """

    name: str
    attr: str
    steps: int = 1
    gap: Node | int | None = None
    of_any_type: bool = False
    at: At = AT

    @property
    def ticks(self) -> int:
        """The longest gap, once it is resolved."""
        assert isinstance(self.gap, int), "gaps are resolved when columns are made of conditions"
        return self.gap

    @property
    def reach(self) -> int:
        """How far back the earlier event can lie, in ticks."""
        return self.steps * self.ticks

    @cached_property
    def plain(self) -> frozenset[str]:
        return frozenset({self.name})


@dataclass(frozen=True)
class Place(Node):
    """The number of an event among all events of the source, by which windows in events are measured.

    Args:
        name: the name of the event.
        by_key: whether only the events of its key are numbered.
    """

    name: str
    by_key: bool
    at: At = AT

    @cached_property
    def plain(self) -> frozenset[str]:
        return frozenset({self.name})


@dataclass(frozen=True)
class Case(Node):
    """``CASE WHEN condition THEN value … ELSE value END``.

    Args:
        whens: conditions with their values; the first condition that is true gives the value.
        otherwise: the value if none is true; None gives null.
    """

    whens: tuple[tuple[Node, Node], ...]
    otherwise: Node | None
    at: At = AT

    def parts(self) -> tuple[Node, ...]:
        of = tuple(part for when in self.whens for part in when)
        return of if self.otherwise is None else (*of, self.otherwise)


@dataclass(frozen=True)
class Negative(Node):
    """``- value``."""

    of: Node
    at: At = AT

    def parts(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True)
class Arithmetic(Node):
    """``left op right`` with op in ``+ - * /``."""

    op: str
    left: Node
    right: Node
    at: At = AT

    def parts(self) -> tuple[Node, ...]:
        return self.left, self.right


# ---- conditions


@dataclass(frozen=True)
class Compare(Node):
    """``left op right`` with op in ``< <= > >= = !=``."""

    op: str
    left: Node
    right: Node
    at: At = AT

    def parts(self) -> tuple[Node, ...]:
        return self.left, self.right


@dataclass(frozen=True)
class Member(Node):
    """``value [NOT] IN items``; ``items`` is a tuple of literals and words, or the name of a set."""

    value: Node
    negated: bool
    items: tuple[Node, ...] | str
    at: At = AT

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
    at: At = AT

    def parts(self) -> tuple[Node, ...]:
        return (self.value,)


@dataclass(frozen=True)
class Like(Node):
    """``value [NOT] LIKE 'pattern'`` or ``value [NOT] MATCHES 'expression'``; unknown for null.

    Args:
        value: a text.
        pattern: a text in which ``%`` stands for any characters and ``_`` for one; or a regular expression of RE2.
        negated: whether the text must not fit.
        regex: whether the pattern is a regular expression, which is searched for anywhere in the text.
    """

    value: Node
    pattern: Node
    negated: bool
    regex: bool
    at: At = AT

    @property
    def text(self) -> str:
        """The pattern, once parameters are resolved."""
        return str(self.pattern.value) if isinstance(self.pattern, Literal) else ""

    def parts(self) -> tuple[Node, ...]:
        return (self.value,)


@dataclass(frozen=True)
class Const(Node):
    """``TRUE`` or ``FALSE`` as a condition."""

    value: bool
    at: At = AT


@dataclass(frozen=True)
class Not(Node):
    """``NOT cond``."""

    of: Node
    at: At = AT

    def parts(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True)
class All(Node):
    """``cond AND cond …``."""

    of: tuple[Node, ...]
    at: At = AT

    def parts(self) -> tuple[Node, ...]:
        return self.of


@dataclass(frozen=True)
class Any(Node):
    """``cond OR cond …``."""

    of: tuple[Node, ...]
    at: At = AT

    def parts(self) -> tuple[Node, ...]:
        return self.of


CONDITIONS = (Compare, Member, IsNull, Like, Const, Not, All, Any)
