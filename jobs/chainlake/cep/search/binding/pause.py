"""PAUSE on bindings whose events come in an order that differs between bindings (docs/semantics.md#pause)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chainlake.cep.conditions.blocks import Bindings
from chainlake.cep.conditions.evaluate import Candidates


def without_pause(bindings: Bindings, candidates: Mapping[str, Candidates], pause: int) -> np.ndarray:
    """Which bindings have no two events, neighbouring in time, that are more than ``pause`` ticks apart.

    The events' own times count, since those that a search moves can be further apart.
    """
    everyone = np.arange(bindings.n)
    rows = [everyone for _ in bindings.singles]
    times = [_own(candidates[name], positions) for name, positions in bindings.singles.items()]
    for name, (offsets, flat) in bindings.groups.items():
        rows.append(np.repeat(everyone, np.diff(offsets)))
        times.append(_own(candidates[name], flat))
    row, ts = np.concatenate(rows), np.concatenate(times)
    order = np.lexsort((ts, row))
    row, ts = row[order], ts[order]
    found = np.ones(bindings.n, bool)
    found[row[1:][(row[1:] == row[:-1]) & (ts[1:] - ts[:-1] > pause)]] = False
    return found


def _own(of: Candidates, positions: np.ndarray) -> np.ndarray:
    return of.data.real(of.times(positions))
