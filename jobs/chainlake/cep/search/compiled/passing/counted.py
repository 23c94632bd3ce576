"""What a search counts of the candidates that were left out: how many are in scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from chainlake.cep.conditions.scan import Scan
from chainlake.cep.search.compiled import machine
from chainlake.cep.search.compiled.passing.sweep import marks_in
from chainlake.cep.search.compiled.text.slots import Table


def counted_before(scan: Scan, tables: Sequence[Table], at: Mapping[tuple[str, int], np.ndarray]) -> list[np.ndarray]:
    """For each candidate of a bound name, how many of all candidates of another name are before its ts plus a shift.

    Args:
        scan: the scan, with ``counted`` candidates.
        tables: for each, the bound name, the other name, and the shift.
        at: for bound names and shifts other than 0, how many events are before; int32.

    Returns:
        for each table, one number per candidate of the bound name; int32.
    """
    whole, shorts, found, numbers = list[np.ndarray](), list[np.ndarray](), list[np.ndarray](), [len(tables)]
    ts = np.ascontiguousarray(scan.data.ts, np.int64)
    before: dict[str, np.ndarray] = {}
    for bound, name, shift in tables:
        rows = np.ascontiguousarray(scan.candidates[bound].rows, np.int64)
        words = scan.counted[name].marks.view(np.int64)
        first = name not in before
        before.setdefault(name, np.empty(len(words), np.int32))
        found.append(np.empty(len(rows), np.int32))
        whole += [words, rows, ts]
        shorts += [at[bound, shift] if shift else found[-1], before[name], found[-1]]
        numbers += [len(rows), shift, len(words) if first else 0]
    if found:
        kernel = machine.load(_COUNTED)
        kernel([], whole, [], shorts, machine.NOTHING, np.array(numbers, np.int64), machine.NOTHING)
    return found


#: Counts how many marks are before given rows; if the shift is 0, before the first event of each row's time.
_COUNTED = f"""def kernel(F, I, B, J, kf, ki, st):
    for job in range(ki[0]):
        words = I[3 * job]
        rows = I[3 * job + 1]
        ts = I[3 * job + 2]
        at = J[3 * job]
        before = J[3 * job + 1]
        found = J[3 * job + 2]
        n = ki[3 * job + 1]
        total = 0
        for word in range(ki[3 * job + 3]):
            before[word] = total
            total += {marks_in("words[word]")}
        if ki[3 * job + 2] != 0:
            for i in range(n):
                row = int(at[i])
                lower = words[row >> 3] & ((1 << ((row & 7) << 3)) - 1)
                found[i] = before[row >> 3] + {marks_in("lower")}
            continue
        first = -1
        for i in range(n):
            row = rows[i]
            if row > 0 and ts[row - 1] == ts[row]:
                if first < 0 or ts[first] != ts[row]:
                    first = row
                    while first > 0 and ts[first - 1] == ts[first]:
                        first -= 1
                row = first
            lower = words[row >> 3] & ((1 << ((row & 7) << 3)) - 1)
            found[i] = before[row >> 3] + {marks_in("lower")}
    return 0
"""
