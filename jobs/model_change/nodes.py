"""The nodes of a model: keys, or groups of keys, with the days on which each takes part (design §6)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from jobs.days import day_start_us
from jobs.model_change.reading import Section

_FORMS = "a key, or {name: NAME, keys: [key, ...], from: DAY, to: DAY}"


@dataclass(frozen=True)
class Node:
    """One node.

    Args:
        name: how results call it.
        keys: the key values whose events are its; features may name them one by one (``member``).
        start: first UTC day on which it takes part; None: always.
        end: day after the last one; None: for good.
    """

    name: str
    keys: tuple[str, ...]
    start: date | None = None
    end: date | None = None

    @property
    def dated(self) -> bool:
        """Whether there is a day on which it does not take part."""
        return self.start is not None or self.end is not None

    @property
    def span_us(self) -> tuple[int, int]:
        """The times of the rounds that it takes part in, half-open, microseconds."""
        lowest, highest = -(2**62), 2**62
        return (
            lowest if self.start is None else day_start_us(self.start),
            highest if self.end is None else day_start_us(self.end),
        )


def parse_groups(top: Section) -> dict[str, tuple[Node, ...]]:
    """``nodes`` or ``groups``: a group's id to its ordered nodes; one model without groups has the empty id.

    Raises:
        DefinitionError: naming the key and what is allowed there.
    """
    if ("nodes" in top.values) == ("groups" in top.values):
        top.fail(
            "exactly one of 'nodes' and 'groups' is needed",
            "nodes",
            hint="Give nodes: [key, ...] for one model, or groups: {name: [key, ...]} for several of one kind.",
        )
    if "nodes" in top.values:
        return {"": _nodes(top, "nodes")}
    section = top.section("groups", "a mapping of group names to lists of nodes")
    if not section.values:
        top.fail("'groups' is empty", "groups", hint="Give groups: {name: [key, ...]}.")
    return {str(group): _nodes(section, group) for group in section.values}


def fewest(nodes: tuple[Node, ...]) -> int:
    """The smallest number of nodes that take part on a day on which any does."""
    days = sorted({day for node in nodes for day in (node.start, node.end) if day is not None})
    counts = [sum(node.start is None for node in nodes)]
    for day in days:
        us = day_start_us(day)
        counts.append(sum(node.span_us[0] <= us < node.span_us[1] for node in nodes))
    return min(count for count in counts if count) if any(counts) else 0


def _nodes(section: Section, key: str) -> tuple[Node, ...]:
    value = section.values.get(key)
    if not isinstance(value, list) or not value:
        section.fail(f"'{key}' is not a list of nodes", key, hint=f"Give a non-empty list; each entry: {_FORMS}.")
    found = tuple(_node(section, item, key, i) for i, item in enumerate(value))
    names = [node.name for node in found]
    for name in names:
        if names.count(name) > 1:
            section.fail(f"'{name}' stands twice in '{key}'", key, hint="Name every node once.")
    return found


def _node(section: Section, item: Any, *path: str | int) -> Node:
    if not isinstance(item, dict):
        if item is None or isinstance(item, (list, bool)):
            section.fail(f"'{item}' is not a node", *path, hint=f"Allowed: {_FORMS}.")
        return Node(str(item), (str(item),))
    inner = section.inner(item, *path)
    inner.only("name", "keys", "from", "to")
    keys = inner.names("keys")
    named = item.get("name")
    if named is None and len(keys) > 1:
        inner.fail("a node of several keys needs a name", "name", hint="Give name: a text.")
    start, end = (inner.day(key) if item.get(key) is not None else None for key in ("from", "to"))
    if start is not None and end is not None and start >= end:
        inner.fail(f"'to' {end} is not after 'from' {start}", "to", hint="'to' is the day after the last one.")
    return Node(keys[0] if named is None else str(named), keys, start, end)
