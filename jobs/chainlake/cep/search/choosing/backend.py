"""Which backend runs a branch, and why: the one estimated to take fewer seconds, including compilation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainlake.cep.estimate.cost import Model
from chainlake.cep.search.choosing.seconds import compiled_seconds, numpy_seconds
from chainlake.cep.search.compiled import machine
from chainlake.cep.search.compiled.run import Compiled
from chainlake.cep.search.compiled.text.errors import NotCompilable

BACKENDS = ("auto", "numpy", "compiled")
#: Seconds to import Numba, to compile a kernel, and to read a kernel from disk.
IMPORT, COMPILE, READ = 0.8, 1.5, 0.03


@dataclass(frozen=True)
class Decision:
    """What a branch runs on.

    Args:
        backend: ``numpy`` or ``compiled``.
        why: the reason, in one phrase.
        compiled: what to run, on the compiled backend.
    """

    backend: str
    why: str
    compiled: Compiled | None = None


@dataclass(frozen=True)
class Estimate:
    """What a search in one order is estimated to cost.

    Args:
        evaluations: E.
        by_numpy: seconds on NumPy.
        by_machine: seconds as machine code, without compilation.
    """

    evaluations: float
    by_numpy: float
    by_machine: float

    @classmethod
    def of(cls, model: Model, order: Sequence[str]) -> Estimate:
        """The estimate by the branch's model of the events."""
        return cls(model.evaluations(order), numpy_seconds(model, order), compiled_seconds(model, order))


#: The estimate of a search about which nothing is known.
UNKNOWN = Estimate(0.0, 0.0, 0.0)


def decide(wanted: str, compiled: Compiled, estimate: Estimate) -> Decision:
    """Choose the backend of a branch.

    Args:
        wanted: one of ``BACKENDS``.
        compiled: the branch, whose code is not yet generated.
        estimate: what the branch costs on these events, used only by ``auto``, which takes NumPy if it is
            ``UNKNOWN``.
    """
    if wanted == "numpy":
        return Decision("numpy", "as asked for")
    called = compiled.plan.branch.called
    if called:
        why = f"{' and '.join(called)} {'is' if len(called) == 1 else 'are'} called between the steps, with many pairs"
        return Decision("numpy", f"{why} at a time")
    start = READ if machine.loaded() else IMPORT + READ
    if wanted == "auto" and estimate.by_numpy <= start + estimate.by_machine:
        return Decision("numpy", f"{_about(estimate)} would be done before machine code is ready")
    try:
        shape = compiled.shape
    except NotCompilable as error:
        return Decision("numpy", f"no machine code for {error}")
    if wanted == "compiled":
        return Decision("compiled", "as asked for", compiled)
    ready = (0.0 if machine.loaded() else IMPORT) + (READ if machine.known(shape.source) else COMPILE)
    if estimate.by_numpy <= ready + estimate.by_machine:
        return Decision("numpy", f"{_about(estimate)} would be done before machine code is ready")
    by_value = f", by value: {', '.join(shape.skips)}" if shape.skips else ""
    return Decision("compiled", f"{_about(estimate)}{by_value}", compiled)


def _about(estimate: Estimate) -> str:
    return f"about {estimate.evaluations:,.0f} evaluations"
