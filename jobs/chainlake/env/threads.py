"""How many threads the libraries of linear algebra take."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

#: By which OpenBLAS, which comes with NumPy and SciPy, MKL and OpenMP are told.
_SETTINGS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def one_thread_each(environment: MutableMapping[str, str] = os.environ) -> None:
    """Ask for one thread, before NumPy is imported; what the environment says already stays.

    A model's matrices have some ten columns: threads wait for each other for longer than they compute. What there is to
    share out are stretches of days, and tasks do that.

    Args:
        environment: of this process, or of one that is to be started.
    """
    for name in _SETTINGS:
        environment.setdefault(name, "1")
