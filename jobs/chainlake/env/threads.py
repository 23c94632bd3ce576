"""How many threads libraries for linear algebra use."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

#: The variables that OpenBLAS (which comes with NumPy and SciPy), MKL and OpenMP read.
SETTINGS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def one_thread_each(environment: MutableMapping[str, str] = os.environ) -> None:
    """Ask for one thread, before NumPy is imported; variables that are already set stay as they are.

    A model's matrices have some ten columns, so threads would wait for each other longer than they compute. Work is
    spread by ranges of days instead, over tasks. And the last bits of what a solver finds depend on their number:
    zones would differ between machines.

    Args:
        environment: the environment of this process, or of one to be started.
    """
    for name in SETTINGS:
        environment.setdefault(name, "1")
