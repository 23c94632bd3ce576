"""The parts of a kernel under construction that the writers of lists and sets may use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from chainlake.cep.plan.steps import Plan, Scope, Step
from chainlake.cep.search.compiled.lists.jumps import Jump
from chainlake.cep.search.compiled.lists.scopes import Scopes
from chainlake.cep.search.compiled.lists.skip import Skip
from chainlake.cep.search.compiled.text.code import Writer
from chainlake.cep.search.compiled.text.expressions import Expressions
from chainlake.cep.search.compiled.text.slots import Slots


class KernelContext(Protocol):
    """A kernel under construction; ``generate.Generator`` is the only implementation.

    Attributes:
        places, kept: locals that are saved in the state while the output is emptied, and how they are restored.
        ahead: steps whose lists are made before the preceding step binds anything.
    """

    plan: Plan
    skips: Mapping[int, Skip]
    lists: Mapping[int, int]
    searches: Mapping[int, Jump | None]
    slots: Slots
    make: Expressions
    scopes: Scopes
    out: Writer
    places: list[tuple[str, str]]
    kept: list[str]
    ahead: set[int]

    @property
    def backward(self) -> bool:
        """Whether the events of a loop are bound from the last to the first."""

    def bind(self, name: str, number: int) -> None:
        """Bind the event of a step whose loop contains other loops."""

    def is_limited(self, step: Step) -> bool:
        """Whether some of a step's candidates are left out, and are counted by ``count``."""

    def count(self, step: Step) -> None:
        """Count the evaluations of a step that leaves some candidates out."""

    def enter(self, step: Step, number: int) -> None:
        """Write what follows once the event or set of a step has passed its clauses."""

    def useful(self, name: str, position: str) -> list[str]:
        """Tests that an event passes if it may be part of a wanted match; none if all matches are wanted."""

    def forget_lists(self, number: int) -> None:
        """Mark the lists that belong to the event of a step to be made again."""

    def size(self, name: str) -> str:
        """The slot that holds how many candidates a name has."""

    def apart_from(self, scope: Scope, name: str) -> list[str]:
        """Locals with the positions, among the candidates of ``name``, of events that it must differ from."""

    def not_in_sets(self, scope: Scope, name: str, position: str) -> None:
        """Write statements that skip an event that is a member of a set from which it must differ."""

    def most_usable(self, step: Step) -> str:
        """The slot that holds how many events of one window may be usable for the set of a step."""

    def too_many(self, size: str) -> None:
        """Write the stop for a set with more usable events than the limit allows."""

    def unless_owned(self, start: str, end: str, *otherwise: str) -> None:
        """Write statements for a match that is decided outside the owned range."""
