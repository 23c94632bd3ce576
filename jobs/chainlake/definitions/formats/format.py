"""How files look: the ``formats`` list of a source's YAML, as data (docs/sources.md)."""

from __future__ import annotations

import codecs
from collections.abc import Mapping as Fields
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo

from chainlake.definitions.duration import parse_span
from chainlake.definitions.formats.errors import WrongFormat, WrongSign, WrongTime
from chainlake.definitions.formats.globs import glob_problem
from chainlake.definitions.formats.kinds import KINDS, Kind
from chainlake.definitions.formats.mappings import (
    Mapping,
    Missing,
    Needed,
    check_unpivoted,
    missing_columns,
    read_mappings,
    read_unpivot,
)
from chainlake.definitions.formats.time_formats import is_clock, problem_of
from chainlake.definitions.yaml_lines import Section
from chainlake.words import closest

EPOCHS = {"epoch_s": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1, "s_of_day": 1_000_000, "ms_of_day": 1_000}
NULLS = ("", "NaN", "nan", "NA", "N/A", "n/a", "null", "NULL", "None")
#: Times of events must be between these days unless a format says otherwise.
EARLIEST, LATEST = date(1900, 1, 1), date(2199, 12, 31)
#: Present-day times in seconds, read as milliseconds or microseconds, are before this day.
FINE_EARLIEST = date(1973, 3, 4)
#: The longest distance between an event's time and its file's date, unless a format says otherwise: thirty years. A
#: file may hold a long history up to its date; the years with which clocks and spreadsheets start are further away.
AROUND = "10958 d"
#: Python encodings that are not character sets of files.
_NO_CHARSETS = ("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "mbcs", "oem")
#: Names in the folder of zones that are not places: the machine's own setting, and clocks with leap seconds.
_NO_ZONES = ("localtime", "posixrules", "Factory", "right/", "posix/")


@dataclass(frozen=True)
class TimeRule:
    """Where the time of a row comes from.

    Args:
        columns: columns whose strings, joined by a space, are the time.
        format: ``iso``, a strptime format (``%z`` at its end for offsets), or a key of ``EPOCHS``.
        zone: IANA zone of strings without an offset.
        earliest, latest: days; a row with a time before the first or after the second goes to quarantine.
        around: how far a time may be from the file's date, if its path names one.
    """

    columns: tuple[str, ...]
    format: str
    zone: str
    earliest: date
    latest: date
    around: timedelta

    def bounds(self, file_date: date | None) -> tuple[date, date]:
        """The first and the last possible day for times in a file of ``file_date``."""
        if file_date is None:
            return self.earliest, self.latest
        # The computation uses days since year 1, so that nothing falls outside the calendar.
        at, reach = file_date.toordinal(), -(-self.around // timedelta(days=1))
        first, last = max(at - reach, self.earliest.toordinal()), min(at + reach, self.latest.toordinal())
        return date.fromordinal(first), date.fromordinal(last)


@dataclass(frozen=True)
class Format:
    """One way in which a source's files can look; the first format of the list that fits a file is used."""

    name: str
    kind: str
    glob: str | None
    header_test: tuple[str, ...]
    delimiter: str
    quote: str | None
    decimal: str
    thousands: str | None
    encoding: str
    columns: tuple[str, ...] | None
    skip_lines: int
    #: Whether missing cells at the end of a row count as blank; if not, such a row goes to quarantine.
    fill_short_rows: bool
    members: str
    nulls: tuple[str, ...]
    time: TimeRule
    mapping: dict[str, Mapping]
    unpivot: tuple[tuple[str, str], ...]
    unpivot_into: str | None
    #: The columns that are read; a file that lacks one that is not optional does not have this format.
    needed: tuple[Needed, ...]

    @property
    def listed(self) -> tuple[str, ...] | None:
        """The columns of its rows if the definition says them all; None if the header line of a file does."""
        kind = KINDS[self.kind]
        if kind.pair is not None:
            return kind.pair
        return self.columns if kind.cells else tuple(dict.fromkeys(one.column for one in self.needed))

    @property
    def lines_before(self) -> int:
        """How many lines of a file come before its rows, the header line included."""
        return self.skip_lines + (1 if KINDS[self.kind].cells and self.columns is None else 0)

    def fits_path(self, path: str) -> bool:
        """Whether the glob names ``path`` (relative to landing, ``!member`` included) or its last part."""
        if self.glob is None:
            return True
        outer = path.split("!", 1)[0]
        names = (path, path.rsplit("/", 1)[-1], outer, outer.rsplit("/", 1)[-1])
        return any(fnmatchcase(name, self.glob) for name in names)

    def absent(self, header: list[str]) -> dict[str, str | None]:
        """The columns that ``header`` asks for and a file's header lacks, each with the name there that is most like
        it, or None."""
        free = [name for name in header if name not in self.header_test]
        return {name: closest(name, free) for name in self.header_test if name not in header}

    def missing(self, header: list[str]) -> list[Missing]:
        """The columns without which a file with this ``header`` would be read wrongly."""
        return missing_columns(self.needed, header)

    def misfits(self, header: list[str]) -> list[str]:
        """Why a file with this ``header`` does not have this format or would be read wrongly; empty if it fits."""
        absent = self.absent(header)
        if absent:
            named = (f"'{name}'" + (f" (or is it '{like}'?)" if like else "") for name, like in absent.items())
            return [f"no column {', '.join(named)}, which 'header' asks for"]
        found = [
            f"{missing.text} (line {missing.needed.line}, column {missing.needed.at} of the definition)"
            for missing in self.missing(header)
        ]
        twice = sorted({one.column for one in self.needed if header.count(one.column) > 1})
        found += [f"the column '{name}' is given twice" for name in twice]
        if self.unpivot and not found and not any(column in header for column, _ in self.unpivot):
            found.append("none of the columns of unpivot")
        return found


_KEYS = (
    "name", "kind", "glob", "header", "delimiter", "quote", "decimal", "thousands", "encoding", "columns",
    "skip_lines", "short_rows", "members", "null", "time", "map", "unpivot", "optional",
)  # fmt: skip


def read_format(section: Section, at: int, fields: Fields[str, str], zone: str, type_column: str | None) -> Format:
    """Read one entry of ``formats``.

    Args:
        section: the YAML map.
        at: its position in the list, which gives it a name if it has none.
        fields: what may be mapped, with its type: type, key and the attributes, in that order.
        zone: zone of the source.
        type_column: the column that holds the type, unless ``map`` says otherwise.

    Raises:
        DefinitionError: an unknown key, a value that is not allowed, or a mapping of something unknown.
    """
    section.only(_KEYS)
    name = section.choice("kind", tuple(KINDS), "csv")
    kind = KINDS[name]
    for key in kind.unread:
        if key in section.data:
            raise section.placed(WrongFormat.unread(key, name), key)
    wide, into = read_unpivot(section, fields)
    mapping = read_mappings(section, fields, wide=wide, into=into, pair=kind.pair)
    if type_column is not None:
        mapping.setdefault("type", Mapping(column=type_column))
    time = _time(section, zone, kind)
    if into is not None:
        check_unpivoted(section, list(fields)[1], mapping, time.columns, {column for column, _ in wide}, into)
    needed = _needed(section, fields, mapping, wide, time) if kind.pair is None else ()
    columns = _columns(section, needed)
    delimiter, quote, decimal, thousands = _signs(section, kind)
    skip_lines = section.get("skip_lines", int, default=0)
    if skip_lines < 0:
        raise section.placed(WrongFormat.skipped(), "skip_lines")
    nulls = section.texts("null", NULLS)
    for position, text in enumerate(nulls):
        if text != text.strip():
            raise section.placed(WrongFormat.wide_null(text), "null", position)
    return Format(
        name=section.get("name", str, default=f"format {at + 1}"),
        kind=name,
        glob=_glob(section, "glob"),
        header_test=section.texts("header"),
        delimiter=delimiter,
        quote=quote or None,
        decimal=decimal,
        thousands=thousands,
        encoding=_encoding(section),
        columns=columns,
        skip_lines=skip_lines,
        fill_short_rows=section.choice("short_rows", ("quarantine", "fill"), "quarantine") == "fill",
        members=_glob(section, "members") or "*",
        nulls=nulls,
        time=time,
        mapping=mapping,
        unpivot=wide,
        unpivot_into=into,
        needed=needed,
    )


def _needed(
    section: Section,
    fields: Fields[str, str],
    mapping: Fields[str, Mapping],
    wide: tuple[tuple[str, str], ...],
    time: TimeRule,
) -> tuple[Needed, ...]:
    """The columns that are read from a file of cells."""
    optional = section.texts("optional")
    keys = list(fields)[:2]
    given = section.section("map").data
    found = []
    for column in time.columns:
        spot = section.spot("time", "column")
        found.append(Needed(column, "the time", spot.line, spot.column, True, False))
    for name, rule in mapping.items():
        if rule.column is None or (wide and rule.column == "value"):
            continue
        spot = section.spot("map", name) if name in given else section.spot()
        what = "the type" if name == keys[0] else f"the key {name}" if name == keys[1] else f"attribute {name}"
        own = name not in keys
        found.append(Needed(rule.column, what, spot.line, spot.column, name in given or not own, own))
    for column, key in wide:
        spot = section.spot("unpivot", "columns", column)
        found.append(Needed(column, f"the key '{key}'", spot.line, spot.column, True, False))
    read = [one.column for one in found]
    attributes = [one.column for one in found if one.attribute]
    attributes += [column for column, _ in wide]
    for at, column in enumerate(optional):
        if column not in attributes:
            near = closest(column, attributes)
            raise section.placed(WrongFormat.optional(column, column in read, near, attributes), "optional", at)
    return tuple(replace(one, optional=one.column in optional) for one in found)


def _columns(section: Section, needed: tuple[Needed, ...]) -> tuple[str, ...] | None:
    if "columns" not in section.data:
        return None
    columns = section.texts("columns")
    if "header" in section.data:
        raise section.placed(WrongFormat.two_headers(), "columns")
    for at, name in enumerate(columns):
        if name in columns[:at]:
            raise section.placed(WrongFormat.column_twice(name), "columns", at)
    for missing in missing_columns(needed, list(columns)):
        raise section.placed(WrongFormat.lacking(missing.text, columns), "columns")
    return columns


def _signs(section: Section, kind: Kind) -> tuple[str, str, str, str | None]:
    """The delimiter, the quote (may be empty), the decimal sign and the thousands sign."""
    delimiter = section.get("delimiter", str, default=",")
    quote = section.get("quote", str, default='"')
    decimal = section.choice("decimal", (".", ","), ".")
    thousands = section.get("thousands", str)
    signs = (("delimiter", delimiter, (1,)), ("quote", quote, (0, 1)), ("thousands", thousands, (1,)))
    for key, value, lengths in signs:
        if value is None:
            continue
        if len(value) not in lengths:
            raise section.placed(WrongSign.several(key, value), key)
        if value.isalnum() or value in ("+", "-", "\n", "\r", "\0") or (key != "thousands" and not value.isascii()):
            raise section.placed(WrongSign.no_sign(key, value), key)
    if decimal == delimiter and kind.cells or (thousands is not None and thousands == decimal):
        raise section.placed(WrongSign.decimal(), "decimal")
    if kind.cells and quote and quote in (decimal, thousands):
        raise section.placed(WrongSign.quote_in_number(), "quote")
    if quote == delimiter:
        key = "quote" if "quote" in section.data else "delimiter"
        raise section.placed(WrongSign.quote(), key)
    return delimiter, quote, decimal, thousands


def _encoding(section: Section) -> str:
    encoding = str(section.get("encoding", str, default="utf-8"))
    try:
        found = codecs.lookup(encoding)
        # Python also calls base64 and similar codecs encodings; only those for text decode bytes to characters.
        b"aa".decode(encoding, "replace")
    except (LookupError, ValueError):
        raise section.placed(WrongFormat.no_encoding(encoding), "encoding") from None
    if found.name.replace("-", "_") in _NO_CHARSETS:
        raise section.placed(WrongFormat.no_charset(encoding), "encoding")
    return encoding


def _glob(section: Section, key: str) -> str | None:
    glob = section.get(key, str)
    problem = None if glob is None else glob_problem(glob)
    if problem is not None:
        raise section.placed(WrongFormat.no_file(str(glob), problem.what, problem.hint), key)
    return None if glob is None else str(glob)


def _time(section: Section, zone: str, kind: Kind) -> TimeRule:
    time = section.section("time")
    time.only(("column", "format", "zone", "earliest", "latest", "around"))
    columns = time.texts("column") if kind.pair is None else kind.pair[:1]
    if not columns:
        raise section.placed(WrongTime.no_column(), "time")
    for position, name in enumerate(columns):
        if name in columns[:position]:
            raise time.placed(WrongTime.column_twice(name), "column", position)
    form = time.get("format", str, default="iso")
    if form != "iso" and form not in EPOCHS:
        if "%" not in form:
            raise time.placed(WrongTime.no_format(form, ("iso", *EPOCHS)), "format")
        problem = problem_of(form)
        if problem is not None:
            raise time.placed(WrongTime.unfit_format(form, problem.what, problem.hint), "format")
    if form in EPOCHS and len(columns) > 1:
        raise time.placed(WrongTime.one_number(form, len(columns)), "column")
    if "zone" in time.data and (form.startswith("epoch_") or form.endswith("%z")):
        raise time.placed(WrongTime.no_zone(form), "zone")
    zone = time.get("zone", str, default=zone)
    check_zone(time, "zone", zone)
    earliest = time.get("earliest", date, default=FINE_EARLIEST if form in ("epoch_ms", "epoch_us") else EARLIEST)
    latest = time.get("latest", date, default=LATEST)
    if earliest > latest:
        raise time.placed(WrongTime.crossed(), "earliest" if "earliest" in time.data else "latest")
    around = parse_span(time.get("around", str, default=AROUND))
    if not around:
        raise time.placed(WrongTime.no_duration(time.data["around"]), "around")
    return TimeRule(columns, form, zone, earliest, latest, around)


def date_from_path(form: str) -> bool:
    """Whether times of this format are times of day, which need the date in the file's path."""
    return form.endswith("_of_day") or (form not in EPOCHS and is_clock(form))


def check_zone(section: Section, key: str, zone: str) -> None:
    """Raise ``DefinitionError`` unless ``zone`` is an IANA zone."""
    try:
        if zone.startswith(_NO_ZONES):
            raise ValueError(zone)
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise section.placed(WrongTime.unknown_zone(zone), key) from None
