"""Which names say when a match is decided, and so which task owns it, and what tasks need of one another."""

from __future__ import annotations

from collections.abc import Iterator

from chainlake.cep.heavy.asking import worth_asking
from chainlake.cep.heavy.shape import Shape
from chainlake.cep.language import ast
from chainlake.cep.language.declared.function import Heavy
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.pattern import Pattern


def decides(pattern: Pattern, branch: Branch, name: str) -> bool:
    """Whether ≺ alone implies that the time of a name's event decides who owns a match."""
    positive = set(branch.positive)
    if name in branch.kleene or name not in positive or pattern.extras.keep:
        return False
    return (branch.after if pattern.open_right else branch.before)[name] >= positive - {name}


def calls_of(pattern: Pattern, branch: Branch) -> Iterator[tuple[ast.Call, Heavy]]:
    """The calls of functions of pairs in the conditions of a branch, and in what is computed of its matches."""
    literals = (literal for clause in branch.every_clause for literal in clause.literals)
    for value in (*literals, *pattern.extras.measured):
        for call in value.heavy:
            if call.own is not None and call.own.heavy is not None and call.names <= branch.names:
                yield call, call.own.heavy


def has_dear_pairs(pattern: Pattern) -> bool:
    """Whether it calls, for one event or two, functions that it is worth asking others for.

    Not a ranked pattern: it leaves out what cannot be among the best, and so cannot say which pairs it will need.
    """
    if pattern.extras.ranking is not None:
        return False
    return any(_is_dear(*one) for branch in pattern.branches for one in calls_of(pattern, branch))


def shares_pairs(pattern: Pattern) -> bool:
    """Whether two tasks that own different matches can need the same of these pairs.

    They cannot if each call has the event by whose time the owner of a match is known.
    """
    return has_dear_pairs(pattern) and any(
        branch.stream is not None or not any(decides(pattern, branch, name) for name in call.names)
        for branch in pattern.branches
        for call, function in calls_of(pattern, branch)
        if _is_dear(call, function)
    )


def _is_dear(call: ast.Call, function: Heavy) -> bool:
    return worth_asking(function) and Shape.of(call, function).names is not None
