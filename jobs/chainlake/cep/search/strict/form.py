"""The conditions of a branch of ``SEQ STRICT``, sorted by when they can be tested.

Neighbours fix where one name ends and the next begins. So only a repeated first name can grow to the left of the bound
events, and only a repeated last name to the right; everything else is between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor

from chainlake.cep.language import ast
from chainlake.cep.language.normal_form import Branch, Clause

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
#: More events than any stream has.
ANY_NUMBER = 1 << 60


@dataclass(frozen=True)
class Form:
    """A branch of neighbours.

    Args:
        branch: the branch.
    """

    branch: Branch

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The ordinary names, in the order of the stream."""
        positive = self.branch.positive
        return tuple(sorted(positive, key=lambda name: len(self.branch.before[name].intersection(positive))))

    @cached_property
    def first(self) -> str | None:
        """The first name, if it is repeated."""
        return self.names[0] if self.names[0] in self.branch.kleene else None

    @cached_property
    def last(self) -> str | None:
        """The last name, if it is repeated."""
        return self.names[-1] if self.names[-1] in self.branch.kleene else None

    @cached_property
    def growing(self) -> frozenset[str]:
        """The names that can get more events while all others keep theirs."""
        return frozenset(name for name in (self.first, self.last) if name is not None)

    @cached_property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """How many events each name has at least and at most."""
        found = {name: (1, ANY_NUMBER if name in self.branch.kleene else 1) for name in self.names}
        for name, least, most in filter(None, map(_size, self.branch.clauses)):
            if name in found:
                found[name] = max(found[name][0], least), min(found[name][1], most)
        return found

    @cached_property
    def constant(self) -> tuple[Clause, ...]:
        """The conditions without names."""
        return tuple(clause for clause in self.branch.clauses if not clause.names)

    @cached_property
    def others(self) -> tuple[Clause, ...]:
        """The conditions on ordinary names, except those on one event alone and those on the size of a set."""
        alone = {clause for clauses in self.branch.own.values() for clause in clauses}
        return tuple(c for c in self.branch.positive_clauses if c.names and c not in alone and _size(c) is None)

    @cached_property
    def inner(self) -> tuple[Clause, ...]:
        """Those of ``others`` that mention no growing name."""
        return tuple(clause for clause in self.others if not clause.names & self.growing)

    def members(self, name: str) -> tuple[Clause, ...]:
        """Those of ``others`` that each event of a growing name passes on its own, given the names that do not grow."""
        return tuple(
            clause for clause in self.others if clause.names & self.growing == {name} and name not in clause.aggregated
        )

    @cached_property
    def whole(self) -> tuple[Clause, ...]:
        """Those of ``others`` that must be tested on whole matches."""
        done = {*self.inner, *(clause for name in self.growing for clause in self.members(name))}
        return tuple(clause for clause in self.others if clause not in done)

    @cached_property
    def longest_is_largest(self) -> bool:
        """Whether matches that grow as far as they can contain all shorter ones with the same other events.

        A forbidden event rejects a longer run only if it rejects the shorter ones, too, unless it is compared with an
        aggregate. With UNTIL and COLLECT, this does not hold.
        """
        negated = frozenset(self.branch.negated)
        judged = any(c.aggregated & self.growing for c in self.branch.clauses if c.names & negated)
        return not (self.whole or judged or self.branch.until or self.branch.collected)


def _size(clause: Clause) -> tuple[str, int, int] | None:
    """``(name, least, most)`` of a condition that only says how many events a name has; None for any other."""
    match clause.literals:
        case (ast.Compare(op, ast.Aggregate("COUNT", name, None, distinct=False) as count, ast.Literal(value)),):
            pass
        case (ast.Compare(op, ast.Literal(value), ast.Aggregate("COUNT", name, None, distinct=False) as count),):
            op = _TURNED.get(op, op)
        case _:
            return None
    if count.of is not None or isinstance(value, str | bool) or op not in _TURNED:
        return None
    least = {">=": ceil(value), ">": floor(value) + 1, "=": ceil(value)}.get(op, 1)
    most = {"<=": floor(value), "<": ceil(value) - 1, "=": floor(value)}.get(op, ANY_NUMBER)
    return name, max(least, 1), min(most, ANY_NUMBER)
