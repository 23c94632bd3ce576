"""The structure of a query: events, groups, branches, and the clauses around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from chainlake.cep.language.ast.nodes import AT, Node, Placed
from chainlake.cep.language.ast.ranking import Ranking, Score
from chainlake.cep.language.source_text import At


class Role(StrEnum):
    """What happens to the events of a name."""

    BOUND = "bound"
    FORBIDDEN = "forbidden"
    COLLECTED = "collected"
    UNTIL = "until"


@dataclass(frozen=True)
class Size:
    """How many members a set may have.

    Args:
        least: the smallest number of members.
        most: the largest number, or None.
    """

    least: int = 1
    most: int | None = None


#: The size of ``B* b``, ``B+ b`` and ``COLLECT(B b)``.
ANY_SIZE = Size()


@dataclass(frozen=True)
class Event:
    """One event of the structure.

    Args:
        type: its event type, or ``ANY_TYPE``.
        name: its name.
        kleene: whether the name is bound to a set of events (not by ``COLLECT``).
        role: what happens to its events.
        size: how many members the set may have.
        optional: ``B? b``: with or without; ``COLLECT?(B b)``: the set may be empty.
    """

    type: str
    name: str
    kleene: bool = False
    role: Role = Role.BOUND
    size: Size = ANY_SIZE
    optional: bool = False
    at: At = AT

    @property
    def negated(self) -> bool:
        """Whether it must not happen."""
        return self.role is Role.FORBIDDEN


@dataclass(frozen=True)
class Group:
    """``SEQ(…)``, ``AND(…)``, ``ANY(2, …)``, or ``OR(…)`` inside one of them.

    Args:
        kind: ``SEQ``, ``AND``, ``ANY`` or ``OR``.
        items: in the order written.
        strict: ``stream`` for ``SEQ STRICT``, ``key`` for ``SEQ STRICT OF KEY``, else empty.
        of: how many of the items ``ANY`` takes.
        within: the group's own window, or None.
    """

    kind: str
    items: tuple[Event | Group, ...]
    at: At = AT
    strict: str = ""
    of: int = 0
    within: Within | None = None


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
    """One alternative: a structure with its own condition, and perhaps its own score."""

    structure: Structure
    where: Node | None
    at: At = AT
    score: Score | None = None


@dataclass(frozen=True)
class Within:
    """The window: ``value`` is a number or a parameter's name; ``unit`` is None for the native unit."""

    value: int | float | str
    unit: str | None
    at: At = AT


@dataclass(frozen=True)
class EventWindow:
    """``25 EVENTS`` or ``GAP 25 EVENTS``, with ``OF KEY``.

    Args:
        count: how many events there are at most, from the first to the last or between neighbours of the match.
        gap: whether they are counted between neighbours.
        by_key: whether only events of one key count.
    """

    count: int
    gap: bool
    by_key: bool
    at: At = AT


@dataclass(frozen=True)
class Pick:
    """``first a within 5 s from c``.

    Args:
        last: whether the last event is taken, not the first.
        name: the name whose event is chosen.
        within: how far it may be from the other event, or None.
        origin: the name of the other event, or None.
    """

    last: bool
    name: str
    within: Within | None = None
    origin: str | None = None
    at: At = AT


@dataclass(frozen=True)
class Selection:
    """Which of the matches are published, and which events they use up.

    Args:
        context: ``unrestricted``, ``recent``, ``chronicle``, ``continuous``, ``cumulative``, or empty.
        select: ``each``, ``first``, ``last``, ``per_initiator``, or empty.
        picks: instead of both.
        consume: ``all``, ``none``, ``initiator``, names, or None if it is not stated.
        per: ``match``, ``terminator``, or empty if it is not stated.
    """

    context: str = ""
    select: str = ""
    picks: tuple[Pick, ...] = ()
    consume: str | tuple[str, ...] | None = None
    per: str = ""
    at: At = AT


@dataclass(frozen=True)
class Measure(Placed):
    """``expression AS name``.

    Args:
        value: the expression.
        name: the column's name.
    """

    value: Node
    name: str
    at: At = AT


@dataclass(frozen=True)
class Episodes:
    """``EPISODES BY name.attr PAUSE 10 min``.

    Args:
        name: the event whose attribute the key is; empty for a measure, or an attribute that all events of a match
            share.
        attr: the attribute, or the measure.
        pause: how far apart the matches of an episode are at most.
    """

    name: str
    attr: str
    pause: Within
    at: At = AT


@dataclass(frozen=True)
class Query:
    """A whole query.

    Args:
        branches: as written, one per argument of an ``OR`` at the top.
        where: the condition of all branches.
        within: the window; None if only the pause bounds a match.
        pause: the longest time between neighbouring events of a match, or None.
        keep: ``MAXIMAL``, ``OUTERMOST``, or empty.
        measures: computed columns.
        counted: windows in events.
        selection: which matches are published, or None for all.
        episodes: which matches make one episode, or None.
        ranking: which matches are the best, or None for all.
    """

    branches: tuple[Branch, ...]
    where: Node | None
    within: Within | None
    pause: Within | None = None
    keep: str = ""
    measures: tuple[Measure, ...] = ()
    counted: tuple[EventWindow, ...] = ()
    selection: Selection | None = None
    episodes: Episodes | None = None
    ranking: Ranking | None = None


def windows_of(structure: Structure) -> Iterator[tuple[Within, frozenset[str]]]:
    """The windows of groups inside a structure, each with the names whose events it spans."""
    if isinstance(structure, Event):
        return
    if structure.within is not None:
        spanned = (event for event in events_of(structure) if event.role is Role.BOUND)
        yield structure.within, frozenset(event.name for event in spanned)
    for item in structure.items:
        yield from windows_of(item)
