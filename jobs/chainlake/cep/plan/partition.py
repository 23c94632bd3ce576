"""What is known from a pattern before any event is read: its partition key."""

from __future__ import annotations

from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Branch, Clause


def partition_key(branches: tuple[Branch, ...], key: str | None = None) -> str | None:
    """A column such that equal values of it link all names of every branch, not only positive ones.

    Neighbours are neighbours among all events, whatever the conditions say, so only ``OF KEY`` links them, by that key.

    Args:
        branches: the pattern's.
        key: the column that says which events are of one series.
    """
    streams = [branch.stream for branch in branches if branch.stream is not None]
    if streams:
        others = [branch for branch in branches if branch.stream is None]
        linked = key is not None and all(stream.by_key for stream in streams)
        return key if linked and all(_links_all(branch, str(key)) for branch in others) else None
    columns = [column for b in branches for clause in b.every_clause if (column := _linked(clause)[0]) is not None]
    for column in dict.fromkeys(columns):
        if all(_links_all(branch, column) for branch in branches):
            return column
    return None


def equated(branches: tuple[Branch, ...], key: str) -> bool:
    """Whether all events of every match have one value of a column."""
    return all(same_in_match(branch, key) for branch in branches)


def linked_by(clause: Clause, column: str) -> bool:
    """Whether a clause says only that two names have the same value of a column."""
    return _linked(clause)[0] == column


def _linked(clause: Clause) -> tuple[str | None, frozenset[str]]:
    """``(column, {name, name})`` for a clause ``name.column = name.column``."""
    match clause.literals:
        case (ast.Compare("=", ast.Ref(one, a), ast.Ref(other, b)),):
            if a == b and one != other and a not in ("id", "ts"):
                return a, frozenset({one, other})
    return None, frozenset()


def _links_all(branch: Branch, column: str) -> bool:
    """Whether all events that are bound in a match, belong to its sets or reject it have one value of the column.

    A clause with a negated name says which event rejects, and nothing about the match itself: it links the negated name
    to the match, but neither two positive names nor the members of a set. The same goes for collected names and UNTIL.
    """
    linked = _links(branch, column)
    others = (*branch.gaps, *branch.until)
    return same_in_match(branch, column) and all(any(name in names for names in linked) for name in others)


def same_in_match(branch: Branch, column: str) -> bool:
    """Whether conditions give all events of a match, except those of collected sets, one value of a column.

    Args:
        branch: one of the pattern's.
        column: an attribute.
    """
    positive = set(branch.positive)
    if len(positive) == 1 and branch.kleene:
        return False
    return _reached(branch, column) == positive


def _links(branch: Branch, column: str) -> list[frozenset[str]]:
    """The pairs of names that have one value of a column."""
    return [names for c in branch.every_clause for key, names in [_linked(c)] if key == column]


def _reached(branch: Branch, column: str) -> set[str]:
    """The positive names whose events conditions equate in a column with those of the first name."""
    linked, positive = _links(branch, column), set(branch.positive)
    reached = {branch.positive[0]}
    while new := {n for names in linked if names & reached and names <= positive for n in names} - reached:
        reached |= new
    return reached
