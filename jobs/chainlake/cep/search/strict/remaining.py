"""What remains to be tested once all ordinary names of a branch of neighbours are bound: NOT, UNTIL and COLLECT."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chainlake.cep.conditions.blocks import Bindings
from chainlake.cep.conditions.evaluate import Candidates
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.completion import Completion, completion_of
from chainlake.cep.plan.steps import Forbidden, scope_of
from chainlake.cep.search.binding.complete import Completer
from chainlake.cep.search.binding.negation import not_forbidden
from chainlake.cep.search.statistics import Statistics
from chainlake.cep.search.strict.form import Form
from chainlake.cep.search.strict.runs import Runs
from chainlake.cep.search.strict.stream import Stream


@dataclass(frozen=True)
class RemainingTests:
    """The remaining tests, which go by time, for one branch in one stream.

    Args:
        form: the branch.
        stream: the events of the ordinary names.
        scan: the events of all names.
        tests: the tests for forbidden events.
        completion: UNTIL and COLLECT.
        statistics: what is counted.
    """

    form: Form
    stream: Stream
    scan: Scan
    tests: tuple[Forbidden, ...]
    completion: Completion
    statistics: Statistics

    @classmethod
    def of(
        cls, pattern: Pattern, branch: Branch, stream: Stream, block_rows: int, statistics: Statistics
    ) -> RemainingTests:
        """The tests that the branch asks for."""
        every: dict[str, Candidates] = dict.fromkeys(branch.positive, stream.candidates)
        tests = []
        for name in (name for name in branch.types if name not in branch.positive):
            alone = branch.own[name]
            every[name] = stream.others(branch, name, alone)
            if name in branch.negated:
                clauses = tuple(clause for clause in branch.clauses_of(name) if clause not in alone)
                tests.append(Forbidden(name, scope_of(branch, name, branch.positive), clauses))
        scan = Scan(stream.data, every, stream.window, block_rows)
        return cls(Form(branch), stream, scan, tuple(tests), completion_of(branch, pattern.extras.pause), statistics)

    @property
    def names(self) -> tuple[str, ...]:
        """The ordinary names, in the order of the stream."""
        return self.form.names

    def bound(self, runs: Runs) -> Bindings:
        """The events of all ordinary names as bindings."""
        return runs.bindings(self.stream, self.form.branch, self.names)

    def passed(self, runs: Runs) -> np.ndarray:
        """The rows of the combinations that no forbidden event rejects."""
        rows = np.arange(runs.n)
        for test in self.tests:
            kleene, count = self.form.branch.kleene, self.statistics.count_neg
            rows = rows[not_forbidden(test, self.bound(runs.at(rows)), self.scan, kleene, count)]
        return rows

    def complete(self, runs: Runs, limit: int | None) -> Iterator[tuple[np.ndarray, Bindings]]:
        """The matches among combinations that have passed, with their sets: their rows, and the matches.

        Args:
            runs: the combinations.
            limit: how many members a set may have; None for any number.

        Raises:
            LimitExceeded: a set has more members.
        """
        bound = self.bound(runs)
        if self.completion.is_nothing:
            yield np.arange(runs.n), bound
            return
        yield from Completer(self.completion, self.scan, limit, self.statistics).run(bound)

    def matches(self, runs: Runs) -> Iterator[Runs]:
        """The matches among some combinations."""
        found = runs.at(self.passed(runs)) if self.tests else runs
        if self.completion.is_nothing:
            if found.n:
                yield found
            return
        for rows, _ in self.complete(found, None):
            if len(rows):
                yield found.at(rows)
