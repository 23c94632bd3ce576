"""One binding found by several branches is one match (docs/semantics.md#operators): it is left to the first of them.

Whether an earlier branch finds a binding too is decided by testing the definition of a match on it, so that no set of
matches has to be kept.
"""

from __future__ import annotations

import numpy as np

from chainlake.cep.conditions.blocks import Bindings
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.plan.steps import Forbidden, routing, scope_of
from chainlake.cep.search.negation import not_forbidden


def same_names(earlier: Branch, branch: Branch) -> bool:
    """Whether the two can have a match in common: the same positive names, of the same types."""
    return set(earlier.positive) == set(branch.positive) and all(
        earlier.types[name] == branch.types[name] for name in branch.positive
    )


def also_matches(
    earlier: Branch,
    branch: Branch,
    found: Bindings,
    scan: Scan,
    earlier_scan: Scan,
) -> np.ndarray:
    """Which matches of ``branch`` are matches of the branch ``earlier`` as well.

    Args:
        earlier: the branch that comes first; of the ``same_names``.
        branch: the branch that found the matches.
        found: its matches.
        scan: what it was searched in.
        earlier_scan: the same for ``earlier`` (the candidates of its negated names are used).
    """
    same = np.ones(found.n, bool)
    for name in branch.kleene - earlier.kleene:
        same &= np.diff(found.groups[name][0]) == 1
    rows = np.flatnonzero(same)
    every = {**earlier_scan.candidates, **{name: scan.candidates[name] for name in branch.positive}}
    both = Scan(scan.data, every, scan.window, scan.block_rows)
    rebound = _as_bound_by(earlier, found.at(rows))
    good = np.ones(len(rows), bool)
    for name in earlier.positive:
        for other in earlier.before[name] & set(earlier.positive):
            good &= rebound.latest(other, every) < rebound.earliest(name, every)
    view = rebound.view(scan.data, every)
    for clause in earlier.positive_clauses:
        good &= view.holds(clause, earlier.kleene)
    for negated in earlier.negated:
        rows, rebound = rows[good], rebound.at(np.flatnonzero(good))
        clauses = tuple(c for c in earlier.clauses_of(negated) if c not in routing(earlier)[negated])
        test = Forbidden(negated, scope_of(earlier, negated, earlier.positive), clauses)
        free = not_forbidden(test, rebound, both, earlier.kleene, lambda tests: None)
        good = np.zeros(rebound.n, bool)
        good[free] = True
    result = np.zeros(found.n, bool)
    result[rows[good]] = True
    return result


def _as_bound_by(branch: Branch, found: Bindings) -> Bindings:
    """The same bindings, each name as single event or set as ``branch`` has it."""
    singles = {name: positions for name, positions in found.singles.items() if name not in branch.kleene}
    groups = {name: group for name, group in found.groups.items() if name in branch.kleene}
    singles |= {name: flat for name, (_, flat) in found.groups.items() if name not in branch.kleene}
    groups |= {
        name: (np.arange(found.n + 1), positions) for name, positions in found.singles.items() if name in branch.kleene
    }
    return Bindings(found.n, singles, groups, found.start, found.end)
