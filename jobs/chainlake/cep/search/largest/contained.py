"""Which of many sets are contained in others.

First, each set strikes out the sets that equal it without one of its elements; then each of the few that are left is
compared with the larger ones that have its rarest element.
"""

from __future__ import annotations

import numpy as np

from chainlake.cep.conditions.blocks import flat_blocks

#: How many pairs and elements are looked at at a time.
_BLOCK = 1 << 20


def mixed(values: np.ndarray, seed: int) -> np.ndarray:
    """Whole numbers as 64 bits that look random (SplitMix64); sums of them tell sets apart."""
    x = values.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15) & (2**64 - 1))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def contained(offsets: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Which sets are properly contained in another one.

    Args:
        offsets: set i holds the elements ``offsets[i]:offsets[i + 1]``; no set is empty.
        elements: whole numbers from 0 up, no two equal in a set, in any order.
    """
    sizes = np.diff(offsets)
    struck = np.zeros(len(sizes), bool)
    if not len(sizes) or sizes.min() == sizes.max():
        return struck
    struck |= _one_less(offsets, elements)
    left = np.flatnonzero(~struck)
    counts = sizes[left]
    flat = np.repeat(offsets[left] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(counts.sum())
    struck[left] = _compared(np.concatenate([[0], np.cumsum(counts)]), elements[flat])
    return struck


def _one_less(offsets: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Which sets equal another one without one of its elements."""
    sizes = np.diff(offsets)
    parts = [mixed(elements, seed) for seed in (1, 2)]
    sums = [np.add.reduceat(part, offsets[:-1]) for part in parts]
    order = np.argsort(sums[0])
    ordered = sums[0][order]
    found = np.zeros(len(sizes), bool)
    for low in range(0, len(elements), _BLOCK):
        at = np.arange(low, min(low + _BLOCK, len(elements)))
        whole = np.searchsorted(offsets, at, "right") - 1
        less = [total[whole] - part[at] for total, part in zip(sums, parts, strict=True)]
        begin, end = (np.searchsorted(ordered, less[0], side) for side in ("left", "right"))
        for rows, within in flat_blocks(end - begin, _BLOCK):
            same = order[begin[rows] + within]
            # Two 64-bit sums that are both equal by chance are less likely than faulty memory.
            found[same[sums[1][same] == less[1][rows]]] = True
    return found


def _compared(offsets: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """Which sets are contained in others; each is compared with the larger ones that have its rarest element."""
    sizes = np.diff(offsets)
    number = np.unique(elements, return_inverse=True)[1].reshape(-1)
    every = int(number.max(initial=-1)) + 1
    sets = np.repeat(np.arange(len(sizes)), sizes)
    # The sets of each element, the largest first.
    order = np.lexsort((-sizes[sets], number))
    keys = number[order] * (int(sizes.max(initial=0)) + 1) - sizes[sets[order]]
    low = np.searchsorted(number[order], number, "left")
    larger = np.searchsorted(keys, number * (int(sizes.max(initial=0)) + 1) - sizes[sets], "left") - low
    rarest = _first_least(larger, offsets)
    tests = np.where(larger[rarest] > 0, larger[rarest], 0)
    members = np.sort(sets * every + number)
    found = np.zeros(len(sizes), bool)
    for rows, within in flat_blocks(tests, _BLOCK):
        others = sets[order[low[rarest[rows]] + within]]
        inside = np.ones(len(rows), bool)
        for some, nth in flat_blocks(sizes[rows], _BLOCK):
            keys_wanted = others[some] * every + number[offsets[rows[some]] + nth]
            at = np.minimum(np.searchsorted(members, keys_wanted), len(members) - 1)
            inside[some[members[at] != keys_wanted]] = False
        found[rows[inside]] = True
    return found


def _first_least(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The first place of each group's smallest value."""
    least = np.repeat(np.minimum.reduceat(values, offsets[:-1]), np.diff(offsets))
    places = np.where(values == least, np.arange(len(values)), len(values))
    found: np.ndarray = np.minimum.reduceat(places, offsets[:-1])
    return found
