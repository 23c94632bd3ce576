"""The nodes of a model: keys, or groups of keys, with the days on which each takes part."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, ClassVar

import numpy as np

from chainlake.days import day_start_us
from chainlake.model_change.config.errors import WrongNodes
from chainlake.model_change.config.reading import Settings

_FORMS = "a key, or {name: NAME, keys: [key, ...], from: DAY, to: DAY} or with dates: [{from: DAY, to: DAY}, ...]"
#: Times before and after all rounds, microseconds.
_EVER = (-(2**62), 2**62)


@dataclass(frozen=True)
class Node:
    """One node.

    Args:
        name: what results call it.
        keys: the key values whose events belong to it; features may name them one by one (``member``).
        dates: ranges of UTC days on which it takes part, in order, each as the first day (None: since forever) and
            the day after the last one (None: for good); empty: it always takes part.
    """

    #: Of the hash of a model (`digests.hashed_fields`).
    ALWAYS_HASHED: ClassVar[tuple[str, ...]] = ("dates",)

    name: str
    keys: tuple[str, ...]
    dates: tuple[tuple[date | None, date | None], ...] = ()

    @property
    def dated(self) -> bool:
        """Whether there is a day on which it does not take part."""
        return bool(self.dates)

    def begun(self, day: date) -> bool:
        """Whether it takes part on a day, or did so on an earlier one."""
        return any(first is None or first <= day for first, _ in self.dates or ((None, None),))

    def ended(self, day: date) -> bool:
        """Whether it takes part on no day after this one."""
        return all(end is not None and end <= day + timedelta(days=1) for _, end in self.dates or ((None, None),))

    def takes_part(self, us: np.ndarray) -> np.ndarray:
        """Whether it takes part at each of the given times, in microseconds."""
        found = np.zeros(us.shape, dtype=bool)
        for first, end in self.dates or ((None, None),):
            lo = _EVER[0] if first is None else day_start_us(first)
            hi = _EVER[1] if end is None else day_start_us(end)
            found |= (lo <= us) & (us < hi)
        return found


def parse_groups(top: Settings) -> dict[str, tuple[Node, ...]]:
    """``nodes`` or ``groups`` as a mapping of a group's id to its ordered nodes; a model without groups has the id "".

    Raises:
        DefinitionError: naming the key and what is allowed there.
    """
    if ("nodes" in top.data) == ("groups" in top.data):
        raise top.placed(WrongNodes.one_of_two(), "nodes")
    if "nodes" in top.data:
        return {"": _nodes(top, "nodes")}
    section = top.mapping("groups", "a mapping of group names to lists of nodes")
    if not section.data:
        raise top.placed(WrongNodes.no_groups(), "groups")
    return {str(group): _nodes(section, group) for group in section.data}


def undated(top: Settings, groups: dict[str, tuple[Node, ...]], what: str) -> dict[str, tuple[Node, ...]]:
    """The groups unchanged, once it is checked that none of their nodes joins or leaves.

    Raises:
        DefinitionError: a node does; ``what`` says what the nodes are.
    """
    for group, nodes in groups.items():
        for i, node in enumerate(nodes):
            if node.dated:
                path = ("groups", group, i) if group else ("nodes", i)
                raise top.placed(WrongNodes.dated(what), *path)
    return groups


def fewest(nodes: tuple[Node, ...]) -> int:
    """The smallest number of nodes that take part at once, times without any left out."""
    edges = {day_start_us(day) for node in nodes for span in node.dates for day in span if day is not None}
    us = np.array([_EVER[0], *sorted(edges)])
    counts = np.sum([node.takes_part(us) for node in nodes], axis=0)
    return int(counts[counts > 0].min(initial=len(nodes)))


def _nodes(section: Settings, key: str) -> tuple[Node, ...]:
    value = section.data.get(key)
    if not isinstance(value, list) or not value:
        raise section.placed(WrongNodes.no_list(key, _FORMS), key)
    found = tuple(_node(section, item, key, i) for i, item in enumerate(value))
    names = [node.name for node in found]
    for name in names:
        if names.count(name) > 1:
            raise section.placed(WrongNodes.twice(name, key), key)
    return found


def _node(section: Settings, item: Any, *path: str | int) -> Node:
    if not isinstance(item, dict):
        if item is None or isinstance(item, (list, bool)):
            raise section.placed(WrongNodes.no_node(item, _FORMS), *path)
        name = str(section.typed(*path))
        return Node(name, (name,))
    inner = section.at(item, *path)
    inner.only(("name", "keys", "from", "to", "dates"))
    keys = inner.names("keys")
    named = item.get("name")
    if named is None and len(keys) > 1:
        raise inner.placed(WrongNodes.no_name(), "name")
    return Node(keys[0] if named is None else inner.key_value("name"), keys, _dates(inner))


def _dates(node: Settings) -> tuple[tuple[date | None, date | None], ...]:
    """``dates``, or the single range that ``from`` and ``to`` give."""
    listed = node.data.get("dates")
    if listed is None:
        one = _range(node)
        return () if one == (None, None) else (one,)
    if "from" in node.data or "to" in node.data:
        raise node.placed(WrongNodes.two_dates(), "dates")
    if not isinstance(listed, list) or not listed or not all(isinstance(item, dict) for item in listed):
        raise node.placed(WrongNodes.no_dates(), "dates")
    found: list[tuple[date | None, date | None]] = []
    for i, item in enumerate(listed):
        inner = node.at(item, "dates", i)
        inner.only(("from", "to"))
        first, end = _range(inner)
        if found and (first is None or found[-1][1] is None or first <= found[-1][1]):
            raise inner.placed(WrongNodes.unordered(first, found[-1][1]), "from")
        found.append((first, end))
    return tuple(found)


def _range(section: Settings) -> tuple[date | None, date | None]:
    first, end = (section.day(key) if section.data.get(key) is not None else None for key in ("from", "to"))
    if first is not None and end is not None and first >= end:
        raise section.placed(WrongNodes.ends_before(end, first), "to")
    return first, end
