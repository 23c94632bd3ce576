"""Takes apart ANY, OR inside SEQ and AND, and optional events (docs/semantics.md#normal-form)."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from math import prod

from chainlake.cep.language import ast
from chainlake.cep.language.errors.structure import BeyondLimit, NoPositiveEvent
from chainlake.cep.language.source_text import SourceText

#: Alternatives multiply; more branches than this are taken for a mistake.
MAX_BRANCHES = 64

#: One alternative of an item: the structure that takes its place, or nothing.
_Alternative = tuple[ast.Structure, ...]


def expand(source: SourceText, branch: ast.Branch) -> tuple[ast.Branch, ...]:
    """The branches that one branch as written stands for, the one with all optional events first.

    Raises:
        DefinitionError: there are too many, or one has no event left.
    """
    count = _count(branch.structure)
    if count > MAX_BRANCHES:
        raise BeyondLimit.branches(source, branch.at, count, MAX_BRANCHES)
    found = []
    for items in _alternatives(branch.structure):
        if not items:
            raise NoPositiveEvent.optional(source, branch.at)
        found.append(replace(branch, structure=items[0]))
    return tuple(found)


def is_optional(item: ast.Structure) -> bool:
    """Whether an event may be missing (which is not whether a set may be empty)."""
    return isinstance(item, ast.Event) and item.optional and item.role is ast.Role.BOUND


def _count(item: ast.Structure) -> int:
    if isinstance(item, ast.Event):
        return 2 if is_optional(item) else 1
    counts = [_count(one) for one in item.items]
    if item.kind == "ANY":
        return sum(prod(some) for some in combinations(counts, item.of))
    return sum(counts) if item.kind == "OR" else prod(counts)


def _alternatives(item: ast.Structure) -> list[_Alternative]:
    if isinstance(item, ast.Event):
        return [(replace(item, optional=False),), ()] if is_optional(item) else [(item,)]
    if item.kind == "ANY":
        chosen = combinations(item.items, item.of)
        return [one for some in chosen for one in _alternatives(replace(item, kind="AND", items=some, of=0))]
    each = [_alternatives(one) for one in item.items]
    if item.kind == "OR":
        return [alternative for alternatives in each for alternative in alternatives]
    found: list[_Alternative] = []
    for parts in product(*each):
        items = tuple(_flat(item.kind, part) for alternative in parts for part in alternative)
        inner = tuple(one for group in items for one in group)
        found.append((replace(item, items=inner),) if inner else ())
    return found


def _flat(kind: str, item: ast.Structure) -> tuple[ast.Structure, ...]:
    """The items of an inner group of the same kind without a window, which adds nothing; else the item itself."""
    same = isinstance(item, ast.Group) and item.kind == kind and item.within is None
    return item.items if isinstance(item, ast.Group) and same else (item,)
