"""How many sets there are of some events, by how many members they may have."""

from __future__ import annotations

from functools import lru_cache
from math import comb

from chainlake.cep.language.ast import Size

#: Events of one window are never more.
_MOST_EVENTS = 1 << 40


def number_of_sets(size: Size, events: int) -> int:
    """How many sets of the size ``events`` events make."""
    if size.most is None or size.most >= events:
        return (1 << events) - sum(comb(events, k) for k in range(size.least))
    return sum(comb(events, k) for k in range(size.least, size.most + 1))


@lru_cache
def most_usable(size: Size, members: int) -> int:
    """Of how many events all sets of the size may be made.

    Args:
        size: of the sets.
        members: of how many events all sets of any size may be made: no more sets than these make are allowed.
    """
    allowed, low, high = (1 << members) - 1, members, members
    while number_of_sets(size, high) <= allowed and high < _MOST_EVENTS:
        low, high = high, 2 * high
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if number_of_sets(size, middle) <= allowed else (low, middle)
    return low
