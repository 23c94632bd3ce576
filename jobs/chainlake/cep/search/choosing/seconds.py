"""What a binding order costs in seconds on either backend, and which order costs least.

Evaluations (``chainlake.cep.estimate.cost``) say what an order costs on paper. Seconds differ: NumPy pays for each
binding that it extends, while machine code skips candidates that a value rules out, and finds those that several
bindings share only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import inf

from chainlake.cep.estimate.cost import LISTED_NAMES, Model
from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.plan.steps import scope_of
from chainlake.cep.search.compiled.lists.scopes import first_of, last_of
from chainlake.cep.search.compiled.lists.skip import by_value, list_key
from chainlake.cep.search.compiled.text.comparison import comparison

#: Seconds on NumPy for a binding to be extended, for an evaluation, and for a binding found.
NUMPY_VISIT, NUMPY_TEST, NUMPY_FOUND = 60e-9, 9e-9, 60e-9
#: Seconds as machine code for an event's entry in a table of scopes, for a binding to be extended, and for a
#: candidate of a list.
TABLE, VISIT, ITEM = 5e-9, 4e-9, 1e-9
#: Seconds until machine code can begin, including Numba's import and compilation. It is a constant, since the choice of
#: an order must not depend on what this process did before.
READY = 1.0
#: Seconds per evaluation of a set, on either backend.
NUMPY_SET, COMPILED_SET = 1 / 20e6, 1 / 500e6


def numpy_seconds(model: Model, order: Sequence[str]) -> float:
    """How many seconds NumPy is estimated to search in ``order``."""
    singles = [name for name in order if name not in model.branch.kleene]
    found = _sets(model, order) * NUMPY_SET
    for number, name in enumerate(singles):
        bound = frozenset(singles[:number])
        visits = _visits(model, bound)
        found += visits * NUMPY_VISIT + model.step(bound, name) * NUMPY_TEST
        found += _visits(model, bound | {name}) * NUMPY_FOUND + model.calls(bound, name)
    return found


def compiled_seconds(model: Model, order: Sequence[str]) -> float:
    """How many seconds machine code is estimated to search in ``order``, without compilation."""
    singles = [name for name in order if name not in model.branch.kleene]
    found = _sets(model, order) * COMPILED_SET
    for number, name in enumerate(singles[1:], 1):
        bound = frozenset(singles[:number])
        clauses = _ready(model, singles, number)
        visits, size = _visits(model, bound), model.totals[name]
        scope = model.step(bound, name) / visits if visits else 0.0
        shares = [_share(model, clause) for clause in clauses if comparison(name, clause)]
        key = list_key(singles, number, clauses)
        entered = _visits(model, frozenset(singles[: key + 1]))
        tables = _tables(model.branch, name, singles[:number])
        found += VISIT * visits
        once = by_value(scope, min(shares, default=1.0), visits, size)[0] * visits
        if key < number - 1 and entered:
            seen = frozenset(singles[: key + 1])
            wide = model.step(seen, name) / entered
            listed = wide * model.passing(seen | {name}) / max(model.passing(seen), 1e-12)
            per_list = by_value(wide, min(shares, default=1.0), entered, size)[0]
            as_lists = per_list * min(entered, visits) + visits * listed * ITEM
            if as_lists < once:
                once, tables = as_lists, tables | _tables(model.branch, name, singles[: key + 1])
        found += once + TABLE * sum(model.totals[other] for other, _ in tables)
    return found


def best_order(model: Model, backend: str, first: str | None = None) -> tuple[str, ...]:
    """The order of all positive names with the fewest seconds; of equal ones, the one closest to the order written.

    With more than ``LISTED_NAMES`` single names, it is the one with the fewest evaluations.

    Args:
        model: the branch's model.
        backend: ``numpy``, ``compiled``, or ``auto`` for the quicker of the two.
        first: the name that is bound first in any case, or None.
    """
    if model.branch.stream is not None:
        return model.branch.positive
    if len(model.singles) > LISTED_NAMES or not min(model.totals.values(), default=0.0):
        best = model.best()
        return best if first is None else (first, *(name for name in best if name != first))

    def seconds(order: tuple[str, ...]) -> float:
        by_numpy = numpy_seconds(model, order) if backend != "compiled" else inf
        machine = backend != "numpy" and not model.branch.called
        if not machine and backend == "compiled":
            by_numpy = numpy_seconds(model, order)
        compiled = compiled_seconds(model, order) if machine else inf
        return min(by_numpy, compiled + (READY if backend == "auto" else 0.0))

    return min((order for order in _orders(model) if first is None or order[0] == first), key=seconds)


def _orders(model: Model) -> list[tuple[str, ...]]:
    return [(*order, *model.sets) for order in permutations(model.singles)]


def _visits(model: Model, bound: frozenset[str]) -> float:
    """How many bindings of these names there are."""
    if len(bound) == 1:
        return model.totals[next(iter(bound))]
    return model.left(bound) if bound else 1.0


def _sets(model: Model, order: Sequence[str]) -> float:
    """How many evaluations are of sets."""
    return model.evaluations(order) - model.cost(order) if model.branch.kleene else 0.0


def _ready(model: Model, singles: Sequence[str], number: int) -> list[Clause]:
    """The clauses with other names that can first be tested in step ``number``."""
    bound, name = frozenset(singles[: number + 1]), singles[number]
    return [clause for clause in model.branch.clauses if name in clause.names and clause.names <= bound
            and len(clause.names) > 1]  # fmt: skip


def _tables(branch: Branch, name: str, bound: Sequence[str]) -> set[tuple[str, str]]:
    """The tables in which the scope of ``name`` is looked up: whose events, and which limit (``compiled.scopes``)."""
    scope = scope_of(branch, name, tuple(bound))
    after, before = last_of(branch, scope.after), first_of(branch, scope.before)
    return {
        *((other, "after") for other in after),
        *((other, "lowest") for other in last_of(branch, bound) if other not in after),
        *((other, "before") for other in before),
        *((other, "highest") for other in first_of(branch, bound) if other not in before),
    }


def _share(model: Model, clause: Clause) -> float:
    """The share of candidates that pass a clause and all others between the same names."""
    return model.pass_rates.get(clause.names, 1.0)
