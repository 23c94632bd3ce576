"""Kernels run by the Python interpreter: what the generator writes, on thousands of shapes, without a compiler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from chainlake.cep.search.choosing.backend import decide
from chainlake.cep.search.compiled import machine


def load(source: str) -> machine.Kernel:
    """The function ``kernel`` of ``source``, not compiled."""
    space: dict[str, Any] = {}
    exec(compile(source, "kernel", "exec"), space)

    def call(*args: Any) -> int:
        with np.errstate(all="ignore"):
            return int(space["kernel"](*args))

    return call


def first_positions(searches: Sequence[tuple[np.ndarray, int, np.ndarray]]) -> list[np.ndarray]:
    """As the compiled one, by another way."""
    return [np.searchsorted(ts, wanted + shift, "left").astype(np.int32) for wanted, shift, ts in searches]


@contextmanager
def no_compiler() -> Iterator[None]:
    """Within it, the compiled backend's kernels are interpreted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "load", load)
        patch.setattr("chainlake.cep.search.compiled.lists.scopes.first_positions", first_positions)
        yield


@contextmanager
def always_compiled() -> Iterator[None]:
    """Within it, a search that would choose its backend takes machine code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "chainlake.cep.search.branches.decide",
            lambda wanted, compiled, model: decide("compiled" if wanted == "auto" else wanted, compiled, model),
        )
        yield


@contextmanager
def always_by_value() -> Iterator[None]:
    """Within it, every clause that a loop can skip by is skipped by, and every list that can serve several
    bindings does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chainlake.cep.search.compiled.lists.skip.TEST", 1e9)
        patch.setattr("chainlake.cep.search.compiled.lists.skip.LISTED", 0.0)
        yield


@contextmanager
def always_limited() -> Iterator[None]:
    """Within it, candidates that cannot pass a comparison are left out before every search."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chainlake.cep.search.compiled.passing.choice.LIMITED", float("inf"))
        yield


@contextmanager
def always_paired() -> Iterator[None]:
    """Within it, the last two steps are run the other way round wherever they can be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chainlake.cep.search.compiled.lists.skip.PAIRED", float("inf"))
        yield
