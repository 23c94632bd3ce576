"""How many sets some events make, given how many members a set may have."""

from __future__ import annotations

from functools import lru_cache
from math import comb

from chainlake.cep.language.ast import Size

#: One window never has more events.
_MOST_EVENTS = 1 << 40


def number_of_sets(size: Size, events: int, allowed: int) -> int:
    """How many sets of this size ``events`` events make; ``allowed + 1`` stands for all larger numbers."""
    found, most = 0, events if size.most is None else min(size.most, events)
    for members in range(size.least, most + 1):
        # m of n events are chosen in 2^min(m, n - m) ways at least: none of the large numbers is computed.
        if min(members, events - members) >= allowed.bit_length():
            return allowed + 1
        found += comb(events, members)
        if found > allowed:
            return allowed + 1
    return found


@lru_cache
def most_usable(size: Size, members: int) -> int:
    """The largest number of events whose sets of a size are not too many.

    Args:
        size: how many members a set may have.
        members: the same for sets of any size: no more sets are allowed than this many events make.
    """
    allowed, low, high = (1 << members) - 1, members, members
    while number_of_sets(size, high, allowed) <= allowed and high < _MOST_EVENTS:
        low, high = high, 2 * high
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if number_of_sets(size, middle, allowed) <= allowed else (low, middle)
    return low
