"""Gathers what a kernel reads of its names' candidates (rows, times, columns) in one call of machine code.

NumPy would make one pass over all events for the rows of each name, and one over these rows for the times and for each
column. Here all names and columns are gathered one block of events at a time, while the caches hold the block, and two
columns in one pass over the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from chainlake.cep.conditions.evaluate import Candidates
from chainlake.cep.conditions.scan import Scan
from chainlake.cep.search.compiled import machine
from chainlake.cep.values.values import Value

#: How many events make a block.
_BLOCK = 4096
#: With less than one mark in this many events, eight events without a mark are skipped at a time.
_RARE = 32

_GATHER = f"""def kernel(F, I, B, J, kf, ki, st):
    jobs = ki[0]
    size = ki[1]
    begin = 0
    while begin < size:
        end = begin + {_BLOCK}
        if end > size:
            end = size
        for job in range(jobs):
            marks = B[job]
            words = I[ki[3 * job + 2]]
            rows = I[ki[3 * job + 2] + 1]
            first = st[job]
            n = first
            if ki[3 * job + 4] != 0:
                for word in range(begin >> 3, (end + 7) >> 3):
                    if words[word] != 0:
                        for row in range(word << 3, (word << 3) + 8):
                            rows[n] = row
                            n += marks[row]
            else:
                for row in range(begin, end):
                    rows[n] = row
                    n += marks[row]
            column = ki[3 * job + 2] + 2
            after = column + 2 * ki[3 * job + 3]
            while column + 2 < after:
                values = I[column]
                found = I[column + 1]
                more = I[column + 2]
                also = I[column + 3]
                for i in range(first, n):
                    row = rows[i]
                    found[i] = values[row]
                    also[i] = more[row]
                column += 4
            if column < after:
                values = I[column]
                found = I[column + 1]
                for i in range(first, n):
                    found[i] = values[rows[i]]
            st[job] = n
        begin = end
    return 0
"""


def gather(scan: Scan, wanted: Mapping[str, Collection[str]]) -> None:
    """Gather the rows, times and columns of names whose candidates are known by their marks, all at a time.

    Args:
        scan: the events and candidates to search.
        wanted: names, each with attributes of its events that are 64-bit numbers without a mask of nulls.
    """
    data = scan.data
    jobs: dict[int, tuple[Candidates, set[str]]] = {}
    for name, attributes in wanted.items():
        of = scan.candidates[name]
        if not of.has_rows:
            jobs.setdefault(id(of), (of, set()))[1].update(attributes)
    if not jobs:
        return
    ts = np.ascontiguousarray(data.ts, np.int64)
    numbers, tables, found = [len(jobs), len(ts)], list[np.ndarray](), list[np.ndarray]()
    for of, attributes in jobs.values():
        # One entry more than there are candidates, since a row that is not one is written after the last of them.
        rows, times, *values = made = np.empty((len(attributes) + 2, len(of) + 1), np.int64)
        numbers += [len(tables), len(attributes) + 1, len(of) * _RARE < len(ts)]
        tables += [of.marks.view(np.int64), rows, ts, times]
        for attr, column in zip(attributes, values, strict=True):
            tables += [np.ascontiguousarray(data.columns[attr].values).view(np.int64), column]
        found.append(made[:, : len(of)])
    marks = [of.marks for of, _ in jobs.values()]
    kernel = machine.load(_GATHER)
    kernel([], tables, marks, [], machine.NOTHING, np.array(numbers), np.zeros(len(jobs), np.int64))
    for (of, attributes), (rows, times, *values) in zip(jobs.values(), found, strict=True):
        columns = {}
        for attr, column in zip(attributes, values, strict=True):
            every = data.columns[attr]
            columns[attr] = Value(column.view(every.values.dtype), None, every.kind)
        of.learn(rows, times, columns)
