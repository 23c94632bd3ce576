"""Which backend runs a branch, and why: the one whose estimated seconds are fewer, compiling included."""

from __future__ import annotations

from dataclasses import dataclass

from chainlake.cep.estimate.cost import Model
from chainlake.cep.search.compiled import machine
from chainlake.cep.search.compiled.expressions import NotCompilable
from chainlake.cep.search.compiled.run import Compiled
from chainlake.cep.search.seconds import compiled_seconds, numpy_seconds

BACKENDS = ("auto", "numpy", "compiled")
#: Seconds: Numba imported, a kernel compiled, a kernel read from disk.
IMPORT, COMPILE, READ = 0.8, 1.5, 0.03


@dataclass(frozen=True)
class Decision:
    """What a branch runs on.

    Args:
        backend: ``numpy`` or ``compiled``.
        why: one phrase.
        compiled: what to run, on the compiled backend.
    """

    backend: str
    why: str
    compiled: Compiled | None = None


def decide(wanted: str, compiled: Compiled, model: Model | None) -> Decision:
    """Choose the backend of a branch.

    Args:
        wanted: one of ``BACKENDS``.
        compiled: the branch, not generated yet.
        model: what the branch costs on these events; without it the work is not known, and NumPy is taken.
    """
    if wanted == "numpy":
        return Decision("numpy", "as asked for")
    evaluations = by_numpy = by_machine = 0.0
    if wanted == "auto":
        if model is not None:
            order = compiled.plan.order
            evaluations = model.evaluations(order)
            by_numpy, by_machine = numpy_seconds(model, order), compiled_seconds(model, order)
        start = READ if machine.loaded() else IMPORT + READ
        if by_numpy <= start + by_machine:
            return Decision("numpy", f"about {evaluations:,.0f} evaluations are done before machine code is ready")
    try:
        source = compiled.source
    except NotCompilable as error:
        return Decision("numpy", f"no machine code for {error}")
    if wanted == "compiled":
        return Decision("compiled", "as asked for", compiled)
    ready = (0.0 if machine.loaded() else IMPORT) + (READ if machine.known(source) else COMPILE)
    if by_numpy <= ready + by_machine:
        return Decision("numpy", f"about {evaluations:,.0f} evaluations are done before machine code is ready")
    by_value = f", by value: {', '.join(compiled.skips)}" if compiled.skips else ""
    return Decision("compiled", f"about {evaluations:,.0f} evaluations{by_value}", compiled)
