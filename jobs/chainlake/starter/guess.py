"""Guesses what the columns of a CSV file are (time, key and attributes) from its first rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from statistics import pstdev

from chainlake.cep.plain_files.places import opened
from chainlake.errors import InputError
from chainlake.starter.cells import (
    CLOCKS,
    DATES,
    EPOCHS,
    WHOLE,
    Writing,
    all_fit,
    filled,
    form_of,
    parses,
    type_of,
    writing_of,
)
from chainlake.starter.column_names import names_of, unit_of
from chainlake.starter.file_names import date_of

#: How many rows are looked at.
HEAD = 2_000
_DELIMITERS = ",;\t|"
_KEY_LIKE = re.compile(
    r"(^|_)(id|key|name|ticker|symbol|sensor|station|detector|device|channel|room|node|machine|tag)$"
)
_WINDOWS = {
    "1 s": 1,
    "10 s": 10,
    "1 min": 60,
    "10 min": 600,
    "1 h": 3600,
    "6 h": 21_600,
    "1 d": 86_400,
    "10 d": 864_000,
}
#: Rises that a first pattern may look for; the largest one that occurs in at least `_FEW` places is taken. `_BACK`: how
#: many rows are looked back.
_SHARES = (10.0, 5.0, 2.0, 1.5, 1.2, 1.1, 1.05, 1.02, 1.01, 1.005, 1.002, 1.001)
_FEW, _BACK = 3, 50
#: Lengths of rounds, in seconds.
_ROUNDS = {"1 s": 1, "10 s": 10, "1 min": 60, "5 min": 300, "10 min": 600, "15 min": 900, "1 h": 3600}


class NotGuessed(InputError):
    """A file does not show what its columns are."""

    @classmethod
    def no_rows(cls, file: Path) -> NotGuessed:
        """The file has no header line, or no rows below it."""
        return cls("there is no header line with rows below it", file=file, hint="Give a CSV file with both.")

    @classmethod
    def refused(cls, file: Path, error: OSError) -> NotGuessed:
        """The operating system does not let the file be read."""
        return cls(f"the file cannot be read: {error.strerror or error}", file=file)

    @classmethod
    def no_names(cls, file: Path) -> NotGuessed:
        """The header has a blank name, or a name twice."""
        what = "the header has a blank or duplicate name"
        return cls(what, file=file, line=1, hint="Name each column once.")

    @classmethod
    def no_text(cls, file: Path) -> NotGuessed:
        """The file is not CSV in UTF-8."""
        return cls("this is not a CSV file in UTF-8", file=file, hint="Save it as CSV in UTF-8.")

    @classmethod
    def no_time(cls, file: Path, names: Sequence[str]) -> NotGuessed:
        """None of the columns is a time."""
        hint = "Write the source by hand: docs/sources.md has the formats of times."
        return cls(f"none of the columns {', '.join(names)} is a time in all rows", file=file, line=1, hint=hint)

    @classmethod
    def no_attribute(cls, file: Path) -> NotGuessed:
        """There is no column besides time and key."""
        return cls("there is no column besides the time and the key", file=file, line=1)


@dataclass(frozen=True)
class Column:
    """An attribute: its name in the file, our name, its type, and its unit if the name in the file ends with one."""

    written: str
    name: str
    type: str
    unit: str = ""


@dataclass(frozen=True)
class Rise:
    """What a first pattern looks for: the number that changes most often, and how far it rises in a few places.

    Args:
        name: name of the attribute.
        share: the later value as a multiple of the earlier one.
        deviation: standard deviation of the attribute's values.
    """

    name: str
    share: float
    deviation: float


@dataclass(frozen=True)
class Guess:
    """What a file probably contains.

    Args:
        file: the file.
        delimiter: the sign between cells.
        writing: how numbers, and numbers that are missing, are written.
        header: names of its columns.
        time, form: columns of the time, to be joined by a blank, and the format.
        ambiguous: whether day and month could be the other way round.
        zoned: whether times carry an offset.
        key: the key column; ``None`` if all rows belong to one series.
        unique: whether no two rows have the same key and time.
        attributes: the other columns.
        rows: how many rows were looked at.
        window: a duration of about ten steps from one time to the next.
        rise: what a first pattern looks for; ``None`` if no number rises.
        days: the first and the last day of the times, as they are written.
        round: the usual distance between times, rounded up; ``None`` if it is more than an hour.
        series: the keys that occur.
    """

    file: Path
    delimiter: str
    writing: Writing
    header: tuple[str, ...]
    time: tuple[str, ...]
    form: str
    ambiguous: bool
    zoned: bool
    key: Column | None
    unique: bool
    attributes: tuple[Column, ...]
    rows: int
    window: str
    rise: Rise | None
    days: tuple[date, date]
    round: str | None
    series: tuple[str, ...]


def guess(file: Path) -> Guess:
    """Look at the first rows of a CSV file, plain or gzipped.

    Raises:
        InputError: the file is not CSV, or has no rows, no time, or nothing besides.
    """
    delimiter, columns = _columns(file)
    header = list(columns)
    writing = writing_of(columns, delimiter)
    time, form = _time(file, columns)
    ambiguous = _ambiguous(columns, time, form)
    if ambiguous and (dated := date_of(file.name)) is not None:
        form, ambiguous = _settled(columns, time, form, dated)
    rest = [name for name in header if name not in time]
    key = _key(columns, rest, time, writing)
    named = names_of(rest)
    attributes = tuple(
        Column(name, named[name], type_of(columns[name], writing), unit_of(name)) for name in rest if name != key
    )
    if not attributes:
        raise NotGuessed.no_attribute(file)
    seconds = _seconds([" ".join(row) for row in zip(*(columns[name] for name in time), strict=True)], form)
    window = _window(seconds)
    moments = list(zip(*(columns[name] for name in (*time, *([key] if key else []))), strict=True))
    return Guess(
        file=file,
        delimiter=delimiter,
        writing=writing,
        header=tuple(header),
        time=time,
        form=form,
        ambiguous=ambiguous,
        zoned=form == "iso" and all(re.search(r"(Z|[+-]\d\d:?\d\d)$", text) for text in columns[time[0]] if text),
        key=None if key is None else Column(key, named[key], "string"),
        unique=len(set(moments)) == len(moments),
        attributes=attributes,
        rows=len(moments),
        window=window,
        rise=_rise(
            columns,
            attributes,
            seconds,
            [""] * len(moments) if key is None else columns[key],
            _WINDOWS.get(window),
            writing,
        ),
        days=(_day(min(seconds)), _day(max(seconds))),
        round=_round(seconds),
        series=() if key is None else tuple(sorted(set(columns[key]))),
    )


def _columns(file: Path) -> tuple[str, dict[str, list[str]]]:
    """The delimiter of a CSV file, and its columns by name."""
    lines = _lines(file)
    delimiter = _delimiter(lines)
    rows = list(csv.reader(lines, delimiter=delimiter))
    header = [name.strip() for name in rows[0]] if rows else []
    body = [row for row in rows[1:] if len(row) == len(header)]
    if len(header) < 2 or not body:
        raise NotGuessed.no_rows(file)
    if len(set(header)) < len(header) or "" in header:
        raise NotGuessed.no_names(file)
    return delimiter, {name: [row[at].strip() for row in body] for at, name in enumerate(header)}


def _seconds(moments: Sequence[str], form: str) -> list[float]:
    """Times as seconds since 1970; times without an offset are taken as UTC."""
    if form in EPOCHS:
        return [int(text) / EPOCHS[form] for text in moments]
    read = datetime.fromisoformat if form == "iso" else lambda text: datetime.strptime(text, form)
    times = [read(text) for text in moments]
    return [(one if one.tzinfo else one.replace(tzinfo=UTC)).timestamp() for one in times]


def _round(seconds: Sequence[float]) -> str | None:
    """A length of rounds, such that a round usually has a row of each series; None if there is none."""
    times = sorted(set(seconds))
    steps = sorted(after - before for before, after in zip(times, times[1:], strict=False))
    step = steps[len(steps) // 2] if steps else 0.0
    return next((text for text, length in _ROUNDS.items() if 0 < step <= length), None)


def _day(seconds: float) -> date:
    return datetime.fromtimestamp(seconds, UTC).date()


def _rise(
    columns: dict[str, list[str]],
    attributes: Sequence[Column],
    seconds: Sequence[float],
    keys: Sequence[str],
    window: float | None,
    writing: Writing,
) -> Rise | None:
    """The number that changes most often from row to row of a series, and how far it rises in a few places."""
    order = sorted(range(len(seconds)), key=lambda row: (keys[row], seconds[row]))
    best: tuple[int, Rise] | None = None
    for one in attributes:
        if one.type != "double":
            continue
        values = [writing.value(cell) for cell in columns[one.written]]
        read = [values[row] for row in order]
        steps = sum(keys[a] == keys[b] and x != y for a, b, x, y in zip(order, order[1:], read, read[1:], strict=False))
        rises = _rises(read, [(keys[row], seconds[row]) for row in order], window or 30 * _WINDOWS["1 d"])
        share = next((each for each in _SHARES if sum(rise >= each for rise in rises) >= _FEW), None)
        if share is not None and (best is None or steps > best[0]):
            best = steps, Rise(one.name, share, pstdev([value for value in read if value is not None]))
    return None if best is None else best[1]


def _rises(values: Sequence[float | None], places: Sequence[tuple[str, float]], window: float) -> list[float]:
    """For each row, its value as a multiple of the smallest positive value of its series in the window before it."""
    found = []
    for at, (key, moment) in enumerate(places):
        value = values[at]
        before = []
        for back in range(at - 1, max(-1, at - _BACK), -1):
            if places[back][0] != key or moment - places[back][1] > window:
                break
            before.append(values[back])
        least = min((one for one in before if one is not None and one > 0), default=None)
        if value is not None and least is not None:
            found.append(value / least)
    return found


def _window(seconds: Sequence[float]) -> str:
    """A duration of about ten steps from one time to the next."""
    times = sorted(set(seconds))
    step = (times[-1] - times[0]) / max(1, len(times) - 1)
    return next((text for text, seconds in _WINDOWS.items() if seconds >= 10 * step), "30 d")


def _lines(file: Path) -> list[str]:
    try:
        with opened(file) as stream:
            found = [line.decode("utf-8-sig").rstrip("\r\n") for line, _ in zip(stream, range(HEAD + 1), strict=False)]
    except (UnicodeDecodeError, EOFError):
        raise NotGuessed.no_text(file) from None
    except OSError as error:
        raise NotGuessed.refused(file, error) from None
    return [line for line in found if line.strip()]


def _delimiter(lines: Sequence[str]) -> str:
    """The sign that divides all lines into the same number of cells, and into the most of them."""

    def cells(sign: str) -> int:
        numbers = {len(row) for row in csv.reader(lines[:100], delimiter=sign)}
        return min(numbers) if len(numbers) == 1 else 0

    return max(_DELIMITERS, key=cells)


def _time(file: Path, columns: dict[str, list[str]]) -> tuple[tuple[str, ...], str]:
    """The column of the time, or the two of date and clock, and the format."""
    complete = {name: cells for name, cells in columns.items() if len(filled(cells)) == len(cells)}
    dates: list[tuple[str, str]] = []
    for name, cells in complete.items():
        form = form_of(cells)
        if form is None:
            continue
        if form not in DATES:
            return (name,), form
        dates.append((name, form))
    for name, form in dates:
        for other, cells in complete.items():
            clock = next((one for one in CLOCKS if all_fit(cells, partial(parses, form=one))), None)
            if other != name and clock is not None:
                return (name, other), f"{form} {clock}"
        return (name,), form
    raise NotGuessed.no_time(file, list(columns))


def _swapped(form: str) -> str:
    return form.replace("%d", "%%").replace("%m", "%d").replace("%%", "%m")


def _settled(columns: dict[str, list[str]], time: tuple[str, ...], form: str, dated: date) -> tuple[str, bool]:
    """The order of day and month by which there are times on the date of the file's name, and whether both are."""
    moments = [" ".join(row) for row in zip(*(columns[name] for name in time), strict=True)]
    fits = [one for one in (form, _swapped(form)) if any(_day(at) == dated for at in _seconds(moments, one))]
    return (fits[0], False) if len(fits) == 1 else (form, True)


def _ambiguous(columns: dict[str, list[str]], time: tuple[str, ...], form: str) -> bool:
    swapped = _swapped(form)
    if swapped == form or "%Y%m%d" in form or form.startswith("%Y"):
        return False
    return all(parses(" ".join(row), swapped) for row in zip(*(columns[name] for name in time), strict=True))


def _key(columns: dict[str, list[str]], rest: Sequence[str], time: tuple[str, ...], writing: Writing) -> str | None:
    """The column that distinguishes series, in each of which no time occurs twice; None if there is none.

    Of several candidates, one with a typical name comes first, then one with text.
    """
    moments = list(zip(*(columns[name] for name in time), strict=True))
    rows = len(moments)

    def rank(name: str) -> tuple[bool, bool, bool, int]:
        cells = columns[name]
        values = len(set(cells))
        clear = len(set(zip(moments, cells, strict=True))) == rows
        called = _KEY_LIKE.search(name.lower()) is not None
        return (not clear, not called, type_of(cells, writing) == "double", values)

    def can_be(name: str) -> bool:
        cells = columns[name]
        series = _KEY_LIKE.search(name.lower()) is not None or len(set(cells)) <= max(1, rows // 2)
        codes = type_of(cells, writing) == "string" or all(map(WHOLE.fullmatch, cells))
        return len(filled(cells)) == rows and series and codes

    found = sorted(filter(can_be, rest), key=rank)
    if not found:
        return None
    best = rank(found[0])
    repeated = len(set(moments)) < rows
    return found[0] if not best[1] or not best[2] or (repeated and not best[0]) else None
