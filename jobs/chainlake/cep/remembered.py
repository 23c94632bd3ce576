"""Results that are computed once and kept beside a value that never changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import TypeVar

T = TypeVar("T")


class Remembered:
    """The most recently used values, by key; safe for threads, and empty in a copy that another process receives.

    Args:
        most: how many values are kept.
    """

    def __init__(self, most: int = 128) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, object] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[Remembered], tuple[int]]:
        # Machine code and locks cannot travel to another process.
        return Remembered, (self._most,)

    def recall(self, key: Hashable, kind: type[T]) -> T | None:
        """The value that was kept under ``key``, if it is one of ``kind``."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        return found if isinstance(found, kind) else None

    def keep(self, key: Hashable, value: object) -> None:
        """Keep ``value`` under ``key``, instead of what was there."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def forget(self, key: Hashable) -> None:
        """Drop the value under ``key``."""
        with self._lock:
            self._kept.pop(key, None)
