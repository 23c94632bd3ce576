"""The pass: for each step, the best beginnings that end there are kept, and continued by every later event.

A beginning is dropped once as many others as are wanted are better *whatever follows*: their sum is larger by more than
rounding can undo, or it is equal, from the same numbers or exactly, and their events come first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from chainlake.cep.search.compiled import machine

#: What the pass returns: done; output full; or too many beginnings that are nearly as good as the last one wanted.
DONE, FULL, CROWDED = range(3)
#: Places in the state of the pass.
SEGMENT, POSITION, LIST, FOUND, MADE = range(5)

SOURCE = """
def kernel(F, I, B, J, kf, ki, st):
    gain, total, eps = F[0], F[1], kf[0]
    ts, begins, ends, lists, count = I[0], I[1], I[2], I[3], I[4]
    same, path, out = J[0], J[1], J[2]
    n, size, segments, k, cap, room, exact = ki[0], ki[1], ki[2], ki[3], ki[4], ki[5], ki[6]
    segment, i, current = st[0], st[1], st[2]
    found = 0
    made = 0
    last = n - 1
    while segment < segments:
        if i < 0:
            i = begins[segment]
            for j in range(n):
                count[j] = 0
        end = ends[segment]
        while i <= end:
            if count[last] > 0 and (i == end or lists[i] != current):
                if found + count[last] > room:
                    st[0], st[1], st[2], st[3] = segment, i, current, found
                    st[4] += made
                    return 1
                for x in range(count[last]):
                    for y in range(n):
                        out[found * n + y] = path[(last * (cap + 1) + x) * n + y]
                    found += 1
                count[last] = 0
            if i == end:
                break
            current = lists[i]
            after = i
            while after < end and ts[after] == ts[i]:
                after += 1
            j = last
            while j >= 0:
                base = j * (cap + 1)
                q = i
                while q < after:
                    g = gain[j * size + q]
                    m = 0
                    while g == g and m < (1 if j == 0 else count[j - 1]):
                        before = ((j - 1) * (cap + 1) + m)
                        m += 1
                        s = g
                        if j > 0:
                            s = total[before] + g
                        c = count[j]
                        if c >= k and total[base + k - 1] > s + eps:
                            break
                        made += 1
                        p = c
                        while p > 0:
                            t = total[base + p - 1]
                            if t > s:
                                break
                            if t == s:
                                later = 0
                                y = 0
                                while y < j and later == 0:
                                    one = path[before * n + y]
                                    other = path[(base + p - 1) * n + y]
                                    if one != other:
                                        later = 1 if one > other else -1
                                    y += 1
                                if later == 0:
                                    later = 1 if q > path[(base + p - 1) * n + j] else -1
                                if later > 0:
                                    break
                            p -= 1
                        if exact == 1 and p >= k:
                            continue
                        x = c
                        while x > p:
                            total[base + x] = total[base + x - 1]
                            for y in range(j + 1):
                                path[(base + x) * n + y] = path[(base + x - 1) * n + y]
                            x -= 1
                        total[base + p] = s
                        for y in range(j):
                            path[(base + p) * n + y] = path[before * n + y]
                        path[(base + p) * n + j] = q
                        c += 1
                        dominated = 1
                        while c > k and dominated == 1:
                            x = c - 1
                            worse = 0
                            z = 0
                            while z < x and worse < k:
                                if total[base + z] > total[base + x] + eps:
                                    worse += 1
                                elif exact == 1:
                                    worse += 1
                                elif total[base + z] == total[base + x]:
                                    equal = 1
                                    for y in range(j + 1):
                                        one = same[y * size + path[(base + z) * n + y]]
                                        if one != same[y * size + path[(base + x) * n + y]]:
                                            equal = 0
                                    worse += equal
                                z += 1
                            if worse >= k:
                                c -= 1
                            else:
                                dominated = 0
                        if c > cap:
                            return 2
                        count[j] = c
                    q += 1
                j -= 1
            i = after
        segment += 1
        i = -1
    st[0], st[1], st[2], st[3] = segment, i, current, found
    st[4] += made
    return 0
"""


def kernel(*, compiled: bool) -> Callable[..., int]:
    """The pass as machine code, or as interpreted Python."""
    return machine.load(SOURCE) if compiled else _interpreted()


@cache
def _interpreted() -> Callable[..., int]:
    space: dict[str, Any] = {}
    exec(compile(SOURCE, "the pass", "exec"), space)

    def call(*args: Any) -> int:
        with np.errstate(all="ignore"):
            return int(space["kernel"](*args))

    return call
