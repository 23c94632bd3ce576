"""UTC days and half-open intervals of whole days, the unit of history (docs/semantics.md#days-and-intervals)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from chainlake.errors import UsageError

US_PER_DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ONE = timedelta(days=1)


def instant(us: int) -> datetime:
    """The moment that is this many microseconds after 1970-01-01T00:00Z, in UTC."""
    return _EPOCH + timedelta(microseconds=us)


def us_of(moment: datetime) -> int:
    """Microseconds since 1970-01-01T00:00Z of an aware datetime, exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def day_of(number: int) -> date:
    """The day that is this many days after 1970-01-01."""
    return _EPOCH.date() + timedelta(days=number)


def day_number(day: date) -> int:
    """Days since 1970-01-01."""
    return (day - _EPOCH.date()).days


def day_start_us(day: date) -> int:
    """Microseconds since 1970-01-01T00:00Z at which ``day`` begins."""
    return day_number(day) * US_PER_DAY


def day_of_us(us: int) -> date:
    """The UTC day that holds the instant ``us`` (microseconds since 1970-01-01T00:00Z)."""
    return day_of(us // US_PER_DAY)


class NotDays(UsageError):
    """What was given are no days."""

    @classmethod
    def unread(cls, text: str) -> NotDays:
        """A string that is no day."""
        return cls(f"'{text}' is not a day", hint="Write days as YYYY-MM-DD.")

    @classmethod
    def empty(cls, start: date, end: date) -> NotDays:
        """An interval that ends before it begins, or when."""
        return cls(
            f"the interval {start} to {end} holds no day",
            hint="Intervals are half-open: FROM is included, TO is not, so one day is 2025-10-01 2025-10-02.",
        )


#: All times that there are dates for, ``[first, last)`` in microseconds since 1970-01-01T00:00Z.
ALWAYS = (day_start_us(date.min), day_start_us(date.max))

_WRITTEN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def parse_day(text: str) -> date:
    """``YYYY-MM-DD`` as a date.

    Raises:
        UsageError: for anything else.
    """
    wrong = NotDays.unread(text)
    # Python takes weeks and days of the year, too, and digits of every script.
    if not _WRITTEN.fullmatch(text):
        raise wrong
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise wrong from None


@dataclass(frozen=True)
class Days:
    """The whole UTC days ``[start, end)``; ``end`` is not included."""

    start: date
    end: date

    def __post_init__(self) -> None:
        if self.end <= self.start:
            raise NotDays.empty(self.start, self.end)

    @classmethod
    def parse(cls, start: str, end: str) -> Days:
        """The days from two ``YYYY-MM-DD`` strings, the second one not included."""
        return cls(parse_day(start), parse_day(end))

    @classmethod
    def one(cls, day: date) -> Days:
        """The interval of the single day ``day``."""
        return cls(day, day + _ONE)

    def __iter__(self) -> Iterator[date]:
        day = self.start
        while day < self.end:
            yield day
            day += _ONE

    def __len__(self) -> int:
        return (self.end - self.start).days

    def __contains__(self, day: object) -> bool:
        return isinstance(day, date) and self.start <= day < self.end

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"

    def micros(self) -> tuple[int, int]:
        """``(lo, hi)`` in microseconds, half-open."""
        return day_start_us(self.start), day_start_us(self.end)
