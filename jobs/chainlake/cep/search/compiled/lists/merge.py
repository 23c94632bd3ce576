"""Where the times of one name's events lie among another's: one pass over both, for all of them."""

from __future__ import annotations

from functools import cache

import numpy as np

from chainlake.cep.search.compiled import machine

#: With so many times more times to pass over than times wanted, each is searched for.
FEW = 256
#: So many stretches of the wanted times are gone through side by side: while one waits for its times, others compare.
_LANES = 4
#: With more times per wanted one than the first number, so many are passed over at a stroke.
_STRIDES = ((16, 8), (2, 6), (0.5, 4), (0, 2))
#: Where the wanted ones are few: times that are passed over at a stroke before those of the longest one.
_FAR = 64


@cache
def _source(stride: int) -> str:
    """The pass, by ``stride`` times at a stroke: more are tested than have to be, but without a jump for each."""
    lanes = range(_LANES)
    lines = ["def kernel(F, I, B, J, kf, ki, st):", "    wanted = I[0]", "    ts = I[1]", "    found = J[0]"]
    lines += ["    n = ki[0]", "    size = ki[1]", "    shift = ki[2]", "    part = ki[3]"]
    lines += [f"    whole = size - {stride}"]
    for lane in lanes:
        j, end = f"j{lane}", f"end{lane}"
        lines += [f"    {j} = 0", f"    {end} = size if part > 0 else 0", f"    x = wanted[{lane} * part] + shift"]
        lines += [f"    while {j} < {end}:", f"        middle = ({j} + {end}) >> 1"]
        lines += ["        if ts[middle] < x:", f"            {j} = middle + 1"]
        lines += ["        else:", f"            {end} = middle"]
    lines += ["    for i in range(part):"]
    for lane in lanes:
        j = f"j{lane}"
        lines += [
            f"        x = wanted[i + {lane} * part] + shift",
            *_far(j, stride),
            f"        while {j} <= whole and ts[{j} + {stride - 1}] < x:",
            f"            {j} += {stride}",
            f"        if {j} <= whole:",
            f"            {j} += " + " + ".join(f"(ts[{j} + {k}] < x)" for k in range(stride - 1)),
            "        else:",
            f"            while {j} < size and ts[{j}] < x:",
            f"                {j} += 1",
            f"        found[i + {lane} * part] = {j}",
        ]
    j = f"j{_LANES - 1}"
    lines += [f"    for i in range({_LANES} * part, n):", "        x = wanted[i] + shift"]
    lines += [f"        while {j} < size and ts[{j}] < x:", f"            {j} += 1", f"        found[i] = {j}"]
    return "\n".join([*lines, "    return 0", ""])


def _far(j: str, stride: int) -> list[str]:
    """Passing over many times at a stroke, where the wanted ones are few."""
    if stride < _STRIDES[0][1]:
        return []
    return [f"        while {j} + {_FAR} <= size and ts[{j} + {_FAR - 1}] < x:", f"            {j} += {_FAR}"]


def first_positions(wanted: np.ndarray, shift: int, ts: np.ndarray) -> np.ndarray:
    """For each time of ``wanted``, ascending: how many of the ascending ``ts`` lie before it + ``shift``; int32."""
    if FEW * len(wanted) < len(ts) or not len(wanted):
        return np.searchsorted(ts, wanted + shift, "left").astype(np.int32)
    wanted, ts = np.ascontiguousarray(wanted, np.int64), np.ascontiguousarray(ts, np.int64)
    found = np.empty(len(wanted), np.int32)
    kernel = machine.load(_source(next(stride for share, stride in _STRIDES if len(ts) >= share * len(wanted))))
    sizes = np.array([len(wanted), len(ts), shift, len(wanted) // _LANES], np.int64)
    kernel([], [wanted, ts], [], [found], machine.NOTHING, sizes, machine.NOTHING)
    return found
