"""The order in which a branch's names are bound: rarest first, connected names before others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chainlake.cep.errors import UnfitOrder
from chainlake.cep.language.normal_form import Branch

#: A name that shares a clause with the bound ones is preferred unless it is this many times as frequent as the rarest.
COMPARABLE = 10.0


def choose_order(branch: Branch, frequency: Mapping[str, float]) -> tuple[str, ...]:
    """The positive names of ``branch`` in binding order, single names first.

    Args:
        branch: the branch.
        frequency: events per name after its own conditions, in any common unit.
    """
    singles = [name for name in branch.positive if name not in branch.kleene]
    found: list[str] = []
    while len(found) < len(singles):
        left = [name for name in singles if name not in found]
        rarest = min(left, key=lambda name: frequency[name])
        near = [name for name in left if _connected(branch, name, found)]
        if near and rarest not in near:
            nearest = min(near, key=lambda name: frequency[name])
            if frequency[nearest] <= COMPARABLE * frequency[rarest]:
                rarest = nearest
        elif near:
            # among equally rare names the connected one, then the one written first
            rarest = min(near, key=lambda name: frequency[name])
        found.append(rarest)
    return (*found, *sorted(branch.kleene, key=lambda name: (frequency[name], branch.positive.index(name))))


def _connected(branch: Branch, name: str, bound: Sequence[str]) -> bool:
    return any(name in clause.names and clause.names & set(bound) for clause in branch.clauses)


def given_order(branch: Branch, order: Sequence[str]) -> tuple[str, ...]:
    """``order`` restricted to the names of ``branch``, repeated names moved to the end.

    Raises:
        UsageError: a positive name is missing or is listed twice.
    """
    mine = [name for name in order if name in branch.positive]
    if sorted(mine) != sorted(branch.positive):
        raise UnfitOrder.of(order, branch.positive)
    return (*(n for n in mine if n not in branch.kleene), *(n for n in mine if n in branch.kleene))
