"""Where the times of one name's events are among another's: one pass over both, and one call for all such pairs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from chainlake.cep.search.compiled import machine

#: With this many times per wanted time, each wanted time is found by binary search.
FEW = 256
#: How many sections of the wanted times are processed in parallel: while one waits for memory, others compare.
_LANES = 4
#: If there are at least as many times per wanted time as the first number, as many as the second are skipped at a time.
_STRIDES = ((16, 8), (2, 6), (0.5, 4), (0, 2))
#: With the longest stride, how many times are skipped at a time before that.
_FAR = 64


@cache
def _source() -> str:
    """The passes, one per stride; they test more times than necessary, but without a branch for each."""
    lanes = range(_LANES)
    lines = ["def kernel(F, I, B, J, kf, ki, st):", "    for job in range(ki[0]):"]
    lines += ["        wanted = I[2 * job]", "        ts = I[2 * job + 1]", "        found = J[job]"]
    lines += ["        n = ki[4 * job + 1]", "        size = ki[4 * job + 2]", "        shift = ki[4 * job + 3]"]
    lines += ["        stride = ki[4 * job + 4]", "        if stride == 0:", "            for i in range(n):"]
    lines += ["                x = wanted[i] + shift", "                j = 0", "                end = size"]
    lines += [*_bisect("j", "end", 16), "                found[i] = j", "            continue"]
    lines += [f"        part = n // {_LANES}"]
    for lane in lanes:
        lines += [f"        j{lane} = 0", f"        end{lane} = size if part > 0 else 0"]
        lines += [f"        x = wanted[{lane} * part] + shift", *_bisect(f"j{lane}", f"end{lane}", 8)]
    for number, (_, stride) in enumerate(_STRIDES):
        lines += [f"        {'el' if number else ''}if stride == {stride}:", f"            whole = size - {stride}"]
        lines += ["            for i in range(part):"]
        for lane in lanes:
            lines += [" " * 16 + line for line in _pass_over(lane, stride)]
    j = f"j{_LANES - 1}"
    lines += [f"        for i in range({_LANES} * part, n):", "            x = wanted[i] + shift"]
    lines += [
        f"            while {j} < size and ts[{j}] < x:",
        f"                {j} += 1",
        f"            found[i] = {j}",
    ]
    return "\n".join([*lines, "    return 0", ""])


def _bisect(j: str, end: str, depth: int) -> list[str]:
    """Statements of a binary search for one time."""
    lines = [f"while {j} < {end}:", f"    middle = ({j} + {end}) >> 1", "    if ts[middle] < x:"]
    lines += [f"        {j} = middle + 1", "    else:", f"        {end} = middle"]
    return [" " * depth + line for line in lines]


def _pass_over(lane: int, stride: int) -> list[str]:
    """Statements that move a lane from the position of the previous wanted time to that of the next."""
    j = f"j{lane}"
    lines = [f"x = wanted[i + {lane} * part] + shift"]
    if stride == _STRIDES[0][1]:
        lines += [f"while {j} + {_FAR} <= size and ts[{j} + {_FAR - 1}] < x:", f"    {j} += {_FAR}"]
    lines += [f"while {j} <= whole and ts[{j} + {stride - 1}] < x:", f"    {j} += {stride}", f"if {j} <= whole:"]
    lines += [f"    {j} += " + " + ".join(f"(ts[{j} + {k}] < x)" for k in range(stride - 1)), "else:"]
    return [*lines, f"    while {j} < size and ts[{j}] < x:", f"        {j} += 1", f"found[i + {lane} * part] = {j}"]


def first_positions(searches: Sequence[tuple[np.ndarray, int, np.ndarray]]) -> list[np.ndarray]:
    """For each wanted time, how many of some times are before it plus a shift; one call for all searches.

    Args:
        searches: for each, the ascending wanted times, the shift, and the ascending times; int64.

    Returns:
        for each search, one position per wanted time; int32.
    """
    tables, found, numbers = list[np.ndarray](), list[np.ndarray](), [0]
    for wanted, shift, ts in searches:
        n, size = len(wanted), len(ts)
        tables += [np.ascontiguousarray(wanted, np.int64), np.ascontiguousarray(ts, np.int64)]
        found.append(np.empty(n, np.int32))
        few = FEW * n < size or not n
        numbers += [n, size, shift, 0 if few else next(stride for share, stride in _STRIDES if size >= share * n)]
    if found:
        numbers[0] = len(found)
        kernel = machine.load(_source())
        kernel([], tables, [], found, machine.NOTHING, np.array(numbers, np.int64), machine.NOTHING)
    return found
