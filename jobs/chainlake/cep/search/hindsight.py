"""What the orders of a pattern actually cost on a sample, to check the estimate and the regret of the chosen order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import pyarrow as pa

from chainlake.cep.conditions.evaluate import Candidates
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.estimate.cost import LISTED_NAMES, Model
from chainlake.cep.estimate.selectivity import measure
from chainlake.cep.events.dataset import Dataset
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.steps import make_plan
from chainlake.cep.search.binding.kleene import SetLimit
from chainlake.cep.search.binding.levels import Search
from chainlake.cep.search.find import candidates_of, dataset
from chainlake.cep.search.statistics import Statistics

#: How many evaluations are spent on one pattern; orders estimated to exceed that are not tried, since none is best.
BUDGET = 2_000_000


@dataclass(frozen=True)
class Sample:
    """Some events of a pattern, and what its names and orders cost on them.

    Args:
        pattern: the pattern.
        data: the events.
        candidates: for each branch, those of every name.
        models: for each branch, the model measured on these events.
    """

    pattern: Pattern
    data: Dataset
    candidates: tuple[dict[str, Candidates], ...]
    models: tuple[Model, ...]

    def regret(self, orders: Sequence[Sequence[str]], budget: float = BUDGET) -> float | None:
        """By what share the evaluations of ``orders`` (one per branch) exceed those of the best orders in hindsight.

        Names bound to sets are left out: they come last in every order and cost all orders the same. So are branches
        whose events are neighbours: they have no order.

        Args:
            orders: the chosen orders.
            budget: how many evaluations to spend, by the estimate.

        Returns:
            0.0 if no order is better; None if a branch has more than ``LISTED_NAMES`` single names, or the chosen
            order itself would exceed the budget.
        """
        chosen = best = 0
        for number, (model, order) in enumerate(zip(self.models, orders, strict=True)):
            if model.branch.stream is not None:
                continue
            if len(model.singles) > LISTED_NAMES:
                return None
            mine = tuple(name for name in order if name in model.singles)
            others = sorted((o for o in permutations(model.singles) if o != mine), key=lambda o: (model.cost(o), o))
            spent = model.cost(mine)
            if spent > budget:
                return None
            evaluations = self.evaluations(number, mine)
            least = evaluations
            for other in others:
                spent += model.cost(other)
                if spent > budget:
                    break
                least = min(least, self.evaluations(number, other))
            chosen, best = chosen + evaluations, best + least
        return chosen / best - 1.0 if best else 0.0

    def evaluations(self, number: int, order: tuple[str, ...]) -> int:
        """E of branch ``number`` for ``order``, up to its last single name."""
        branch = self.pattern.branches[number]
        plan = make_plan(branch, (*order, *self.models[number].sets))
        statistics = Statistics()
        search = Search(
            Scan(self.data, self.candidates[number], self.pattern.window_us),
            replace(plan, steps=plan.steps[: len(order)]),
            SetLimit(self.pattern.limits["kleene_members"], self.pattern.open_right, None, self.pattern.window_us),
            statistics,
        )
        for _ in search.run():
            pass
        return statistics.evaluations


def sample_of(pattern: Pattern, events: pa.Table) -> Sample:
    """The sample made of ``events`` (columns as for ``find``); nothing in it depends on the order of the rows."""
    data = dataset(pattern, events.sort_by([("ts", "ascending"), ("event_id", "ascending")]))
    candidates = tuple(candidates_of(pattern, branch, data) for branch in pattern.branches)
    models = tuple(
        measure(branch, data, those, pattern.window_us)
        for branch, those in zip(pattern.branches, candidates, strict=True)
    )
    return Sample(pattern, data, candidates, models)
