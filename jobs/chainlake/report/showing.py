"""Values, units and times for people: the source's local time beside UTC, and units as the source states them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from chainlake.days import instant, us_of
from chainlake.definitions.source import Source
from chainlake.markup import Html, joined, tag
from chainlake.terminal import rounded

_MARKED = re.compile(r"`([^`]+)`|(?<![\w*])\*(?=\S)([^*]+)(?<=\S)\*(?![\w*])")
_MINUTE_US, _WEEK_US = 60_000_000, 7 * 86_400_000_000
#: What is shown where a value is missing.
MISSING = "–"


def number(value: Any) -> str:
    """A value of an attribute, a measure or a count as text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return rounded(value, thousands=",")
    if isinstance(value, list):
        return f"[{', '.join(map(number, value[:12]))}{', …' if len(value) > 12 else ''}]"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return str(value)


def short(value: float | None) -> str:
    """A computed value with four digits, as no more can be compared at a glance, or all those before the point."""
    return number(value) if value is None or math.isnan(value) else rounded(value, 4, thousands=",")


def plain(value: Any) -> float | None:
    """A value for a chart; None if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def counted(many: int, what: str, several: str | None = None) -> str:
    """A number with its noun, such as "2 days"."""
    return f"{many:,} {what if many == 1 else several or what + 's'}"


def comment(text: str) -> list[str]:
    """The comment at the head of a definition's file, as a paragraph; none if it has none.

    Args:
        text: of the file, with or without the line ``---`` that begins a front matter.
    """
    lines = text.splitlines()
    start = 1 if lines and lines[0].strip() == "---" else 0
    found = []
    for line in lines[start:]:
        if not line.lstrip().startswith("#"):
            break
        found.append(line.lstrip().lstrip("#").strip())
    text = " ".join(found).removeprefix("What it means:").strip()
    return [text[:1].upper() + text[1:]] if text else []


def with_code(text: str) -> Html:
    """Prose in which what stands between backticks is code, and between asterisks emphasised."""
    parts = _MARKED.split(text)
    # Between two that were split at: text, code, emphasis.
    found = [tag(("code", "em")[at % 3 - 1], part) if at % 3 else part for at, part in enumerate(parts) if part]
    return joined(found)


@dataclass(frozen=True)
class Clock:
    """Times of a source.

    Args:
        zone: name of its time zone.
    """

    zone: str

    @classmethod
    def of(cls, source: Source | None) -> Clock:
        """The clock of a source; UTC if there is no source."""
        return cls("UTC" if source is None else source.zone)

    def local(self, us: int) -> datetime:
        """A time in the source's zone."""
        return instant(us).astimezone(ZoneInfo(self.zone))

    def offset_ms(self, us: int) -> int:
        """How far the zone is ahead of UTC at a time, in milliseconds."""
        shift = self.local(us).utcoffset()
        return 0 if shift is None else round(shift.total_seconds() * 1000)

    def day(self, us: int) -> date:
        """The local day of a time."""
        return self.local(us).date()

    def span_of(self, day: date) -> tuple[int, int]:
        """The ends of a local day in microseconds, half-open."""
        zone = ZoneInfo(self.zone)
        ends = (datetime(day.year, day.month, day.day, tzinfo=zone), _next(day, zone))
        lo, hi = (us_of(one.astimezone(UTC)) for one in ends)
        return lo, hi

    def text(self, us: int) -> str:
        """A time as text, to the second, or to the microsecond if it has a fraction."""
        local = self.local(us)
        form = "%Y-%m-%d %H:%M:%S.%f" if us % 1_000_000 else "%Y-%m-%d %H:%M:%S"
        if self.zone == "UTC":
            return f"{local:{form}} UTC"
        other = local.astimezone(UTC)
        far = "" if other.date() == local.date() else f"{other:%m-%d} "
        return f"{local:{form}} ({far}{other:%H:%M:%S} UTC)"

    def short(self, us: int) -> str:
        """A local time with its zone, such as ``2013-10-09 14:47:00 EDT``."""
        return f"{self.local(us):%Y-%m-%d %H:%M:%S %Z}"

    def html(self, us: int) -> Html:
        """A time on a page: local, and UTC in small print."""
        local, said = self.local(us), self.text(us)
        first, _, rest = said.partition(" (")
        small = [tag("span", f" ({rest}", class_="utc")] if rest else []
        return tag("time", first, *small, datetime=local.astimezone(UTC).isoformat())

    def title(self, lo_us: int, hi_us: int) -> str:
        """The title of a time axis from ``lo_us`` to ``hi_us``, with all distances from UTC that the zone has there."""
        if self.zone == "UTC":
            return "time (UTC)"
        said, shifts = _from_utc(self.offset_ms(lo_us)), self._shifts(lo_us, hi_us)
        if len(shifts) > 2:
            # Over years it comes and goes, and the axis has no room for every time.
            said = " or ".join(dict.fromkeys([said, *(_from_utc(self.offset_ms(us)) for us in shifts)]))
        else:
            said += "".join(f", from {self.local(us):%d %b} {_from_utc(self.offset_ms(us))}" for us in shifts)
        return f"{self.zone} ({said}), below it UTC"

    def _shifts(self, lo_us: int, hi_us: int) -> list[int]:
        """The minutes inside a stretch of time from which on the zone is at another distance from UTC than before."""
        steps = [*range(lo_us, hi_us, _WEEK_US), hi_us]
        found = []
        for lo, hi in zip(steps, steps[1:], strict=False):
            before = self.offset_ms(lo)
            if self.offset_ms(hi) == before:
                continue
            # No zone of our time changes twice in one week, so that halving finds the one change.
            while hi - lo > _MINUTE_US:
                middle = (lo + hi) // 2
                lo, hi = (middle, hi) if self.offset_ms(middle) == before else (lo, middle)
            found.append(hi)
        return [one for one in found if one < hi_us]


def _from_utc(ahead_ms: int) -> str:
    hours = ahead_ms / 3_600_000
    return f"UTC{'+' if hours >= 0 else '−'}{abs(hours):g} h"


def _next(day: date, zone: ZoneInfo) -> datetime:
    after = date.fromordinal(day.toordinal() + 1)
    return datetime(after.year, after.month, after.day, tzinfo=zone)


def unit_of(source: Source | None, name: str) -> str | None:
    """The unit that a source states for an attribute; None if it states none, or "1"."""
    found = None if source is None else next((a.unit for a in source.attributes if a.name == name), None)
    return None if found in (None, "1") else found


def with_unit(source: Source | None, name: str) -> str:
    """An attribute with its unit, for the heading of an axis or a column."""
    unit = unit_of(source, name)
    return name if unit is None else f"{name} ({unit})"


def dot(colour: str, said: object, *, hatched: bool = False) -> Html:
    """A coloured square with its text, which says the same as the colour and the hatching."""
    kind = "dot hatched" if hatched else "dot"
    return joined([tag("span", class_=kind, style=f"background:var(--{colour})", aria_hidden="true"), said])
