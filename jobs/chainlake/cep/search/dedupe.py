"""A binding that several branches find is one match, left to the first of them (docs/semantics.md#operators).

Whether an earlier branch finds a binding too is decided by testing the definition of a match on it, so no set of
matches needs to be kept.
"""

from __future__ import annotations

import numpy as np

from chainlake.cep.conditions.blocks import FAR, Bindings
from chainlake.cep.conditions.evaluate import Candidates, spread
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.events.any_type import ANY_TYPE, share_events
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.plan.completion import completion_of
from chainlake.cep.plan.steps import Forbidden, routing, scope_of
from chainlake.cep.search.binding.complete import Completer
from chainlake.cep.search.binding.negation import not_forbidden
from chainlake.cep.search.statistics import Statistics


def same_names(earlier: Branch, branch: Branch) -> bool:
    """Whether the two can have a match in common: the same names have events, of types that can be the same."""
    names = _kept(branch)
    return _kept(earlier) == names and all(share_events(earlier.types[name], branch.types[name]) for name in names)


def _kept(branch: Branch) -> frozenset[str]:
    return branch.sets.union(branch.positive)


def also_matches(
    earlier: Branch,
    branch: Branch,
    found: Bindings,
    scan: Scan,
    earlier_scan: Scan,
    pause: int | None = None,
) -> np.ndarray:
    """Which matches of ``branch`` are also matches of the branch ``earlier``.

    Args:
        earlier: the branch that comes first; both have the ``same_names``.
        branch: the branch that found the matches.
        found: its matches, including sets.
        scan: the scan in which it was searched.
        earlier_scan: that of ``earlier``, whose candidates of negated, collected and UNTIL names are used.
        pause: the pattern's, in ticks.
    """
    same = np.ones(found.n, bool)
    for name in branch.sets.intersection(earlier.positive):
        size = np.diff(found.groups[name][0])
        same &= size >= 1 if name in earlier.kleene else size == 1
    rows = np.flatnonzero(same)
    every = {**earlier_scan.candidates, **{name: scan.candidates[name] for name in earlier.positive}}
    both = Scan(scan.data, every, scan.window, scan.block_rows)
    rebound = _as_bound_by(earlier, found.at(rows), every)
    good = _fits(earlier, branch, rebound, both)
    view = rebound.view(scan.data, every)
    cheap_first = sorted(earlier.positive_clauses, key=lambda clause: clause.heavy)
    good &= view.all_hold(cheap_first, earlier.kleene)
    rows, rebound = rows[good], rebound.at(np.flatnonzero(good))
    for negated in earlier.negated:
        clauses = tuple(c for c in earlier.clauses_of(negated) if c not in routing(earlier)[negated])
        test = Forbidden(negated, scope_of(earlier, negated, earlier.positive), clauses)
        free = not_forbidden(test, rebound, both, earlier.kleene, lambda tests: None)
        rows, rebound = rows[free], rebound.at(free)
    result = np.zeros(found.n, bool)
    for some, whole in Completer(completion_of(earlier, pause), both, None, Statistics()).run(rebound):
        result[rows[some][_same_sets(earlier, whole, found.at(rows[some]), every, scan.candidates)]] = True
    return result


def _as_bound_by(branch: Branch, found: Bindings, candidates: dict[str, Candidates]) -> Bindings:
    """The same events bound to the ordinary names of ``branch``, each as a single event or a set as it has them."""
    singles, groups = {}, {}
    for name in branch.positive:
        if name in branch.kleene:
            single = name in found.singles
            groups[name] = (np.arange(found.n + 1), found.singles[name]) if single else found.groups[name]
        else:
            singles[name] = found.singles[name] if name in found.singles else found.groups[name][1]
    rebound = Bindings(found.n, singles, groups, np.full(found.n, FAR), np.full(found.n, -FAR))
    for name in branch.positive:
        rebound.start = np.minimum(rebound.start, rebound.earliest(name, candidates))
        rebound.end = np.maximum(rebound.end, rebound.latest(name, candidates))
    return rebound


def _fits(earlier: Branch, branch: Branch, rebound: Bindings, scan: Scan) -> np.ndarray:
    """Which bindings fit the types, order and window of ``earlier`` and bind no event twice."""
    every = scan.candidates
    good: np.ndarray = rebound.end - rebound.start <= scan.window
    for name in earlier.positive:
        if earlier.types[name] not in (branch.types[name], ANY_TYPE):
            kind = np.zeros(len(scan.data.ts), bool)
            kind[scan.data.of_type(earlier.types[name])] = True
            at, events = _events(rebound, name, every)
            good[at[~kind[events]]] = False
        for other in earlier.before[name].intersection(earlier.positive):
            good &= rebound.latest(other, every) < rebound.earliest(name, every)
    if not set(earlier.positive) <= set(branch.positive):
        # An event that the other branch collected may be bound to two of its names.
        bound = [_events(rebound, name, every) for name in earlier.positive]
        keys = np.concatenate([at * len(scan.data.ts) + events for at, events in bound])
        found, counts = np.unique(keys, return_counts=True)
        good[found[counts > 1] // max(len(scan.data.ts), 1)] = False
    return good


def _events(found: Bindings, name: str, candidates: dict[str, Candidates]) -> tuple[np.ndarray, np.ndarray]:
    """The binding and the sorted row of each event of a name."""
    everyone = np.arange(found.n)
    if name in found.singles:
        return everyone, candidates[name].rows[found.singles[name]]
    offsets, flat = found.groups[name]
    return np.repeat(everyone, np.diff(offsets)), candidates[name].rows[flat]


def _same_sets(
    branch: Branch,
    whole: Bindings,
    found: Bindings,
    candidates: dict[str, Candidates],
    found_candidates: dict[str, Candidates],
) -> np.ndarray:
    """Which bindings have the same sets of the names that ``branch`` collects."""
    good = np.ones(whole.n, bool)
    for name in (one.name for one in branch.collected):
        at, mine = _events(whole, name, candidates)
        other_at, other = _events(found, name, found_candidates)
        good &= np.bincount(at, minlength=whole.n) == np.bincount(other_at, minlength=whole.n)
        rows = np.flatnonzero(good)
        one, another = _of(rows, at, mine, whole.n), _of(rows, other_at, other, whole.n)
        good[np.repeat(rows, np.bincount(at, minlength=whole.n)[rows])[one != another]] = False
    return good


def _of(rows: np.ndarray, at: np.ndarray, events: np.ndarray, n: int) -> np.ndarray:
    """The events of some bindings, one after another."""
    return spread(np.concatenate([[0], np.cumsum(np.bincount(at, minlength=n))]), events, rows)[1]
