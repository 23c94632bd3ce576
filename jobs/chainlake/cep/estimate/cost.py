"""What an order of binding costs before it is run: evaluations estimated from counts, window, ≺, pass rates.

``E(order) = N(first) + Σ (surviving partial matches of the names before) × (events of the next name in scope)``. Each
term depends on the *set* of names bound before and not on their order, so the best order is found exactly by dynamic
programming over sets. Names bound to sets (Kleene) come last in every order and cost all orders the same.
Negated names are not counted: their tests are cheap, and early rejections only help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations
from math import comb, factorial, prod

import numpy as np

from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.plan.sizes import number_of_sets

#: With at most this many single names, all orders are compared; with more, the cheapest next name is taken each time.
EXACT_NAMES = 8
#: With at most this many single names, the estimates of all orders are listed.
LISTED_NAMES = 4
#: With more usable events than this, there are too many sets for the estimate to matter.
MOST_MEMBERS = 16
#: The same for sets that have a size.
_MOST_COUNTED = 1000.0
#: The share of combinations that is assumed to pass a condition with a call of a function of pairs: only calls could
#: tell the real share, and an estimate makes none.
PASSES = 0.1
#: Seconds per evaluation, which convert seconds of calls into evaluations.
EVALUATION = 15e-9


@dataclass(frozen=True)
class Density:
    """How many events of each name lie close together: counts per bucket of time.

    Args:
        counts: name to its events in each bucket, float64 of shape (buckets,).
        weights: how many buckets of the whole input each one stands for, shape (buckets,).
        share: the window's length divided by a bucket's, at most 1.
    """

    counts: Mapping[str, np.ndarray]
    weights: np.ndarray
    share: float

    def tuples(self, names: frozenset[str]) -> float:
        """About how many combinations of one event per name lie in one window, in any order."""
        if not names:
            return 1.0
        product = self.weights.copy()
        for name in sorted(names):
            product *= self.counts[name]
        return float(product.sum()) * len(names) * self.share ** (len(names) - 1)


@dataclass(frozen=True)
class Model:
    """The estimate for one branch.

    Args:
        branch: the branch.
        totals: events per name after its own conditions.
        density: how close together they lie.
        pass_rates: for sets of names, the share of their combinations in scope that pass all conditions between exactly
            these names.
        crowds: for names bound to sets, how many of their events follow one of them within a window.
    """

    branch: Branch
    totals: Mapping[str, float]
    density: Density
    pass_rates: Mapping[frozenset[str], float]
    crowds: Mapping[str, float] = field(default_factory=dict)
    _tuples: dict[frozenset[str], float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def singles(self) -> tuple[str, ...]:
        """The names that are bound to one event, as written."""
        return tuple(name for name in self.branch.positive if name not in self.branch.kleene)

    @property
    def sets(self) -> tuple[str, ...]:
        """The names that are bound to sets, rarest first."""
        written = self.branch.positive
        return tuple(sorted(self.branch.kleene, key=lambda name: (self.totals[name], written.index(name))))

    def in_scope(self, names: frozenset[str]) -> float:
        """How many combinations of these names' events fit the window and ≺, whatever the conditions."""
        if names not in self._tuples:
            extensions = linear_extensions(self.branch, names)
            self._tuples[names] = self.density.tuples(names) * extensions / factorial(len(names))
        return self._tuples[names]

    def passing(self, names: frozenset[str]) -> float:
        """The share of these combinations that pass all conditions between them."""
        share = 1.0
        for those, rate in self.pass_rates.items():
            if those <= names:
                share *= rate
        return share

    def left(self, names: frozenset[str]) -> float:
        """How many partial matches over ``names`` are left."""
        return self.in_scope(names) * self.passing(names)

    def step(self, bound: frozenset[str], name: str) -> float:
        """How many evaluations the step that binds ``name`` after ``bound`` makes."""
        return self.in_scope(bound | {name}) * self.passing(bound) if bound else self.totals[name]

    def calls(self, bound: frozenset[str], name: str) -> float:
        """How many seconds calls of functions of pairs take in the step that binds ``name`` after ``bound``.

        They are made where all cheaper conditions of the step hold, once for each pair.
        """
        now = bound | {name}
        ready = [clause for clause in self.heavy if name in clause.names and clause.names <= now]
        if not ready:
            return 0.0
        reached = self.totals[name] if not bound else self.step(bound, name) * self.passing(now) / self.passing(bound)
        found = 0.0
        for clause in ready:
            found += min(reached / PASSES ** len(ready), self.pairs(clause)) * clause.heavy * 1e-6
        return found

    @cached_property
    def heavy(self) -> tuple[Clause, ...]:
        """The conditions between single names with calls of functions of pairs."""
        singles = frozenset(self.singles)
        return tuple(c for c in self.branch.clauses if c.heavy and c.names and c.names <= singles)

    def pairs(self, clause: Clause) -> float:
        """How many combinations of the names of such a condition pass the cheap conditions between them."""
        if len(clause.names) == 1:
            return self.totals[next(iter(clause.names))]
        hidden = sum(one.names <= clause.names for one in self.heavy)
        return self.left(clause.names) / PASSES**hidden

    def price(self, bound: frozenset[str], name: str) -> float:
        """What a step costs in evaluations, including calls of functions."""
        return self.step(bound, name) + self.calls(bound, name) / EVALUATION

    def cost(self, order: Sequence[str]) -> float:
        """The evaluations of ``order``, without its names bound to sets."""
        total = 0.0
        bound: frozenset[str] = frozenset()
        for name in order:
            if name not in self.branch.kleene:
                total += self.step(bound, name)
                bound |= {name}
        return total

    def evaluations(self, order: Sequence[str]) -> float:
        """The evaluations of ``order`` with a guess at those of sets, which only the choice of a backend needs."""
        found = self.cost(order)
        singles = self.singles
        left = self.left(frozenset(singles)) if len(singles) > 1 else self.totals[singles[0]] if singles else 1.0
        for name in self.sets:
            # Events on one side of a bound one; if none is bound, events that can follow the first member.
            first = not singles and name == self.sets[0]
            usable = self.crowds.get(name, 0.0) / (1.0 if first else 2.0)
            left *= self._sets_of(name, usable) * (self.totals[name] if first else 1.0)
            found += left
        return found

    def _sets_of(self, name: str, usable: float) -> float:
        """About how many sets ``usable`` events make."""
        size = self.branch.sizes.get(name)
        if size is None:
            return float(2.0 ** min(usable, MOST_MEMBERS))
        return min(float(number_of_sets(size, round(min(usable, _MOST_COUNTED)), 1 << MOST_MEMBERS)), 2.0**MOST_MEMBERS)

    def best(self) -> tuple[str, ...]:
        """The cheapest order of all positive names; of equally cheap ones, the one closest to the order written."""
        singles = self.singles
        found = self._exact(singles) if len(singles) <= EXACT_NAMES else self._greedy(singles)
        return (*found, *self.sets)

    def _exact(self, singles: tuple[str, ...]) -> tuple[str, ...]:
        best: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {frozenset(): (0.0, ())}
        for size in range(1, len(singles) + 1):
            for chosen in combinations(range(len(singles)), size):
                reached = frozenset(chosen)
                options = []
                for last in chosen:
                    cost, order = best[reached - {last}]
                    bound = frozenset(singles[i] for i in order)
                    options.append((cost + self.price(bound, singles[last]), (*order, last)))
                best[reached] = min(options)
        return tuple(singles[i] for i in best[frozenset(range(len(singles)))][1])

    def _greedy(self, singles: tuple[str, ...]) -> tuple[str, ...]:
        """The best pair, then the best next name each time: fewest evaluations plus fewest partial matches left."""

        def price(order: Sequence[str]) -> float:
            bound = [frozenset(order[:number]) for number in range(len(order))]
            prices = (self.price(those, name) for those, name in zip(bound, order, strict=True))
            return sum(prices) + self.left(frozenset(order))

        order: tuple[str, ...] = min(permutations(singles, 2), key=price)
        while len(order) < len(singles):
            bound = frozenset(order)
            others = [name for name in singles if name not in bound]
            prices = [self.price(bound, name) + self.left(bound | {name}) for name in others]
            order = (*order, others[prices.index(min(prices))])
        return order

    def estimates(self, others: Sequence[Sequence[str]] = ()) -> dict[str, float]:
        """Estimated evaluations per order, cheapest first.

        Args:
            others: orders that are always listed, such as the one by frequency.

        Returns:
            evaluations by order, its names joined by blanks: of all orders for up to ``LISTED_NAMES`` single names,
            else of the best one, the one written, and ``others``.
        """
        orders = [self.best(), (*self.singles, *self.sets), *map(tuple, others)]
        if len(self.singles) <= LISTED_NAMES:
            orders += [(*order, *self.sets) for order in permutations(self.singles)]
        costs = {order: self.cost(order) for order in dict.fromkeys(orders)}
        return {" ".join(order): costs[order] for order in sorted(costs, key=lambda order: costs[order])}


def linear_extensions(branch: Branch, names: frozenset[str]) -> int:
    """In how many sequences the names can come if ≺ holds between them."""
    if len(names) < 2:
        return 1
    parts = list(_parts(names, branch.ordered))
    if len(parts) == 1:
        # ≺ comes from SEQ and AND, so connected names consist of parts in sequence, each of which is made the same way.
        parts = list(_parts(names, lambda one, other: not branch.ordered(one, other)))
        return prod(linear_extensions(branch, part) for part in parts)
    total, left = 1, len(names)
    for part in parts:
        total *= comb(left, len(part)) * linear_extensions(branch, part)
        left -= len(part)
    return total


def _parts(names: frozenset[str], joined: Callable[[str, str], bool]) -> Iterator[frozenset[str]]:
    """The connected parts of ``names``, where ``joined`` tells whether two names are connected."""
    left = set(names)
    while left:
        part, edge = set(), {min(left)}
        while edge:
            part |= edge
            left -= edge
            edge = {n for n in left if any(joined(n, m) for m in edge)}
        yield frozenset(part)
