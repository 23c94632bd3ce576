"""The subsets of some events that contain the first one, enumerated by number in bounded blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from chainlake.cep.conditions.blocks import flat_blocks
from chainlake.cep.language.ast import ANY_SIZE, Size

#: Larger than every number of a subset, and so small that the sum of two fits in 64 bits.
_MANY = 1 << 62


@dataclass(frozen=True)
class Subsets:
    """Some subsets.

    Args:
        rows: for each subset, the row whose events it is made of.
        offsets: subset s has the members ``offsets[s]:offsets[s + 1]``.
        members: how many places after the first event each member is, ascending in each subset.
    """

    rows: np.ndarray
    offsets: np.ndarray
    members: np.ndarray


def subsets(size: Size, others: np.ndarray, room: int) -> Iterator[Subsets]:
    """All subsets of a size, each once, in blocks.

    Args:
        size: how many members they have.
        others: for each row, how many events there are beside its first one.
        room: how many members are in memory at a time.
    """
    yield from _of_any_size(others, room) if size == ANY_SIZE else _of_size(size, others, room)


def _of_any_size(others: np.ndarray, room: int) -> Iterator[Subsets]:
    """All non-empty subsets: the bits of a number say which of the others are members."""
    width = int(others.max(initial=0))
    bits = np.arange(width)
    for rows, masks in flat_blocks(np.left_shift(1, others), max(1, room // (1 + width))):
        present = np.ones((len(rows), 1 + width), bool)
        present[:, 1:] = (masks[:, None] >> bits) & 1
        offsets = np.concatenate([[0], np.cumsum(np.count_nonzero(present, axis=1))])
        yield Subsets(rows, offsets, np.nonzero(present)[1])


def _of_size(size: Size, others: np.ndarray, room: int) -> Iterator[Subsets]:
    """The subsets of a size: the number of a subset among those of equal size says which of the others are members.

    With C(n, k) the number of ways to choose k of n, every whole number below C(n, k) is C(a, k) + C(b, k - 1) + … for
    exactly one choice n > a > b > … ≥ 0.
    """
    width = int(others.max(initial=-1))
    most = width + 1 if size.most is None else min(size.most, width + 1)
    ways = _ways(width, most - 1)
    for members in range(size.least, most + 1):
        for rows, numbers in flat_blocks(ways[members - 1][others], max(1, room // members)):
            found = np.zeros((len(rows), members), np.int64)
            for left in range(members - 1, 0, -1):
                at = np.searchsorted(ways[left], numbers, "right") - 1
                numbers = numbers - ways[left][at]
                found[:, left] = at + 1
            yield Subsets(rows, np.arange(len(rows) + 1) * members, found.ravel())


def _ways(width: int, most: int) -> list[np.ndarray]:
    """``ways[k][n]``: how many ways there are to choose k of n, ``_MANY`` if there are more."""
    found = [[1] * (width + 1)]
    for _ in range(most):
        sums = accumulate(found[-1][:-1], lambda x, y: min(x + y, _MANY), initial=0)
        found.append(list(sums))
    return [np.array(row, np.int64) for row in found]
