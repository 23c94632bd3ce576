"""What the path of a file says: fields, date and revision."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from chainlake.definitions.formats.time_formats import contradicted
from chainlake.definitions.source import Source
from chainlake.schemas.ops_rows import FileProblem

#: The highest revision that can be stored.
HIGHEST = 2**63 - 1
#: How many characters of a revision a message shows.
_SHOWN = 40
#: First and last possible date of a file, with enough room around them for computing in any zone.
FIRST_DATE, LAST_DATE = date(1000, 1, 1), date(8999, 12, 31)


class PathFields(NamedTuple):
    """What a path says; ``problem`` is the code for the part that cannot be used, else ""."""

    fields: dict[str, str]
    file_date: date | None
    revision: int
    problem: FileProblem | Literal[""] = ""

    @property
    def detail(self) -> str:
        """The problem in words."""
        if self.problem == "bad_path_date":
            return f"'{self.fields['date']}' in its path is not a date"
        revision = self.fields["revision"][:_SHOWN] if self.problem else ""
        return f"'{revision}' in its path is not a whole number from 0 to {HIGHEST}" if self.problem else ""


def path_fields(source: Source, path: str) -> PathFields:
    """The fields of a path, found by the source's expression."""
    found = re.search(source.path.pattern, path) if source.path.pattern is not None else None
    if found is None:
        return PathFields({}, None, 0)
    fields = {name: text for name, text in found.groupdict().items() if text is not None}
    file_date = _parse_date(fields.get("date", ""), source.path.date_format)
    revision = _parse_revision(fields.get("revision", ""))
    kept = HIGHEST if revision is None else revision
    if "date" in fields and (file_date is None or not FIRST_DATE <= file_date <= LAST_DATE):
        return PathFields(fields, None, kept, "bad_path_date")
    return PathFields(fields, file_date, kept, "bad_path_revision" if revision is None else "")


def _parse_date(text: str, form: str) -> date | None:
    if not form:
        text, form = re.sub(r"\D", "", text), "%Y%m%d"
    try:
        found = datetime.strptime(text, form)
    except (ValueError, OverflowError):
        return None
    if contradicted(text, form, found) is not None:
        return None
    # Too few digits for the format can be divided in several ways: 2024111 may be 11 January or 1 November.
    return found.date() if _numbers(found.strftime(form)) == _numbers(text) else None


def _numbers(text: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", text)]


def _parse_revision(text: str) -> int | None:
    """Parse a revision: 0 if the path gives none; ``None`` if it cannot be ranked or stored."""
    if not text:
        return 0
    # A number with thousands of digits is too long even to be converted.
    if not re.fullmatch("[0-9]+", text) or len(text.lstrip("0")) > len(str(HIGHEST)):
        return None
    revision = int(text.lstrip("0") or "0")
    return revision if revision <= HIGHEST else None


def date_begins(file_date: date, zone: str) -> datetime:
    """The instant at which ``file_date`` begins in ``zone``."""
    return datetime(file_date.year, file_date.month, file_date.day, tzinfo=ZoneInfo(zone)).astimezone(UTC)
