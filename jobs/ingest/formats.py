"""How a file looks: the ``formats`` list of a source YAML as data (design §3)."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any
from zoneinfo import ZoneInfo

from jobs.history import parse_duration
from jobs.yaml_lines import Section

KINDS = ("csv", "json_map")
EPOCHS = {"epoch_s": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1, "s_of_day": 1_000_000, "ms_of_day": 1_000}
NULLS = ("", "NaN", "nan", "NA", "N/A", "n/a", "null", "NULL", "None")
#: Times of events lie between these days unless a format says otherwise.
EARLIEST, LATEST = date(1900, 1, 1), date(2199, 12, 31)
#: Seconds of our days, read as milliseconds or microseconds, lie before this day.
FINE_EARLIEST = date(1973, 3, 4)
#: How far from its file's date the time of an event lies at most, unless a format says otherwise: thirty years. A
#: file may hold a long history up to its date; the years that clocks and spreadsheets begin with are further away.
AROUND = "10958 d"
#: ``{date}``, ``{date-1}``, ``{date+1:%Y%m%d}`` in an ``expect`` glob.
DATE_FIELD = re.compile(r"\{date(?:([+-]\d+))?(?::([^{}]+))?\}")
_COMPARISON = re.compile(r"\s*(<=|>=|<|>|=)?\s*(-?\d+(?:\.\d+)?)\s*\Z")


@dataclass(frozen=True)
class Sentinel:
    """A number that means "no value", perhaps only while other attributes hold something.

    Args:
        value: the number as it stands in the file.
        when: (attribute, comparison, number) that must all hold in the row, e.g. ``("flow", "=", 0.0)``.
    """

    value: float
    when: tuple[tuple[str, str, float], ...] = ()


@dataclass(frozen=True)
class Mapping:
    """Where the value of an attribute (or of type or key) comes from.

    Args:
        column: column of the file, or ``None``.
        path: field taken from the path, or ``None``.
        constant: a fixed text, or ``None``.
        scale, offset: unit conversion ``value * scale + offset``.
        round: decimals kept after the conversion, or ``None`` for all.
        sentinels: numbers that mean "no value", before the conversion.
        case: ``upper``, ``lower`` or ``None`` to leave the text as it is.
    """

    column: str | None = None
    path: str | None = None
    constant: str | None = None
    scale: float = 1.0
    offset: float = 0.0
    round: int | None = None
    sentinels: tuple[Sentinel, ...] = ()
    case: str | None = None


@dataclass(frozen=True)
class TimeRule:
    """Where the time of a row comes from.

    Args:
        columns: columns whose texts, joined by a space, hold the time.
        format: ``iso``, a strptime format (``%z`` at its end for offsets), or a key of ``EPOCHS``.
        zone: IANA zone of texts without an offset.
        earliest, latest: days; a row whose time is before the first or after the second goes to quarantine.
        around: how far from the file's date, where its path names one, a time may be.
    """

    columns: tuple[str, ...]
    format: str
    zone: str
    earliest: date
    latest: date
    around: timedelta

    def bounds(self, file_date: date | None) -> tuple[date, date]:
        """The first and the last day that times of a file of ``file_date`` can fall on."""
        if file_date is None:
            return self.earliest, self.latest
        # In days since year 1, so that nothing lies outside the calendar.
        at, reach = file_date.toordinal(), -(-self.around // timedelta(days=1))
        first, last = max(at - reach, self.earliest.toordinal()), min(at + reach, self.latest.toordinal())
        return date.fromordinal(first), date.fromordinal(last)


@dataclass(frozen=True)
class Format:
    """One way the files of a source look; the first format of the list that fits a file is used."""

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
    #: Cells that a row lacks at its end are blank; else such a row goes to quarantine.
    fill_short_rows: bool
    members: str
    nulls: tuple[str, ...]
    time: TimeRule
    mapping: dict[str, Mapping]
    unpivot: tuple[tuple[str, str], ...]
    unpivot_into: str | None
    #: Names (type, key) without which no row can be an event.
    identifying: tuple[str, ...]

    def fits_path(self, path: str) -> bool:
        """Whether the glob names ``path`` (relative to landing, ``!member`` included) or its last part."""
        if self.glob is None:
            return True
        outer = path.split("!", 1)[0]
        names = (path, path.rsplit("/", 1)[-1], outer, outer.rsplit("/", 1)[-1])
        return any(fnmatchcase(name, self.glob) for name in names)

    def fits_header(self, header: list[str]) -> bool:
        """Whether all columns of the header test stand in ``header``."""
        return set(self.header_test) <= set(header)


_KEYS = (
    "name", "kind", "glob", "header", "delimiter", "quote", "decimal", "thousands", "encoding", "columns",
    "skip_lines", "short_rows", "members", "null", "time", "map", "unpivot",
)  # fmt: skip


def read_format(section: Section, at: int, fields: tuple[str, ...], zone: str) -> Format:
    """One entry of ``formats``.

    Args:
        section: the YAML map.
        at: its position in the list, for a name where none is given.
        fields: what may be mapped: type, key and the attributes, in that order.
        zone: zone of the source.

    Raises:
        DefinitionError: an unknown key, a value that is not allowed, or a mapping of something unknown.
    """
    section.only(_KEYS)
    encoding = section.get("encoding", str, default="utf-8")
    try:
        codecs.lookup(encoding)
    except LookupError:
        hint = "E.g. utf-8, utf-16, cp1252."
        raise section.error(f"encoding '{encoding}' is not known", "encoding", hint=hint) from None
    delimiter = section.get("delimiter", str, default=",")
    quote = section.get("quote", str, default='"')
    decimal = section.choice("decimal", (".", ","), ".")
    thousands = section.get("thousands", str)
    signs = (("delimiter", delimiter, (1,)), ("quote", quote, (0, 1)), ("thousands", thousands, (1,)))
    for key, value, lengths in signs:
        if value is not None and len(value) not in lengths:
            raise section.error(f"'{key}' must be a single character", key)
    if decimal == delimiter or (thousands is not None and thousands == decimal):
        raise section.error("the decimal sign must differ from delimiter and thousands sign", "decimal")
    kind = section.choice("kind", KINDS, "csv")
    unpivot, into = _unpivot(section, fields)
    columns = section.texts("columns") if "columns" in section.data else None
    mapping = _mappings(section, fields, unpivot=bool(unpivot), into=into, kind=kind)
    if "header" in section.data and columns is not None:
        raise section.error("'header' tests a header line, 'columns' says there is none", "columns")
    return Format(
        name=section.get("name", str, default=f"format {at + 1}"),
        kind=kind,
        glob=section.get("glob", str),
        header_test=section.texts("header"),
        delimiter=delimiter,
        quote=quote or None,
        decimal=decimal,
        thousands=thousands,
        encoding=encoding,
        columns=columns,
        skip_lines=section.get("skip_lines", int, default=0),
        fill_short_rows=section.choice("short_rows", ("quarantine", "fill"), "quarantine") == "fill",
        members=section.get("members", str, default="*"),
        nulls=section.texts("null", NULLS),
        time=_time(section, zone, kind),
        mapping=mapping,
        unpivot=unpivot,
        unpivot_into=into,
        identifying=fields[:1] if unpivot else fields[:2],
    )


def _time(section: Section, zone: str, kind: str) -> TimeRule:
    time = section.section("time")
    time.only(("column", "format", "zone", "earliest", "latest", "around"))
    columns = ("time",) if kind == "json_map" else time.texts("column")
    if not columns:
        raise section.error("'time.column' is missing", "time", hint="Name the column or columns that hold the time.")
    form = time.get("format", str, default="iso")
    if form != "iso" and form not in EPOCHS and "%" not in form:
        hint = f"One of {', '.join(('iso', *EPOCHS))}, or a format such as '%d.%m.%Y %H:%M'."
        raise time.error(f"time format '{form}' is not known", "format", hint=hint)
    zone = time.get("zone", str, default=zone)
    check_zone(time, "zone", zone)
    earliest = time.get("earliest", date, default=FINE_EARLIEST if form in ("epoch_ms", "epoch_us") else EARLIEST)
    latest = time.get("latest", date, default=LATEST)
    for key, day in (("earliest", earliest), ("latest", latest)):
        if isinstance(day, datetime):
            raise time.error(f"'{key}' must be a day such as 2025-01-31, without a time", key)
    if earliest > latest:
        raise time.error("'earliest' must not be after 'latest'", "earliest" if "earliest" in time.data else "latest")
    around = parse_duration(time.get("around", str, default=AROUND))
    if around is None or not around:
        raise time.error(f"'{time.data['around']}' is not a duration", "around", hint="E.g. 36 h or 400 d.")
    return TimeRule(columns, form, zone, earliest, latest, around)


def check_zone(section: Section, key: str, zone: str) -> None:
    """Raise ``DefinitionError`` unless ``zone`` is an IANA zone."""
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        hint = "An IANA name, such as America/New_York or UTC."
        raise section.error(f"zone '{zone}' is not known", key, hint=hint) from None


def _unpivot(section: Section, fields: tuple[str, ...]) -> tuple[tuple[tuple[str, str], ...], str | None]:
    if "unpivot" not in section.data:
        return (), None
    unpivot = section.section("unpivot")
    unpivot.only(("columns", "into"))
    into = unpivot.get("into", str, required=True)
    if into not in fields[2:]:
        raise unpivot.error(f"'{into}' is not an attribute", "into", hint=f"One of: {', '.join(fields[2:])}.")
    columns = unpivot.get("columns", list, dict, required=True)
    pairs = columns.items() if isinstance(columns, dict) else ((name, name) for name in columns)
    return tuple((str(column), str(key)) for column, key in pairs), into


def _mappings(
    section: Section, fields: tuple[str, ...], *, unpivot: bool, into: str | None, kind: str
) -> dict[str, Mapping]:
    given = section.section("map")
    given.only(fields)
    mapping = {name: _mapping(given, name, fields) for name in given.data}
    for name in fields:
        if name in mapping or name == fields[0] or (unpivot and name == fields[1]):
            continue
        if kind == "json_map":
            if name == fields[1]:
                raise section.error(f"'{name}' needs a mapping", "map", hint="From a path field, or a constant.")
            continue
        mapping[name] = Mapping(column=name)
    if kind == "json_map":
        values = [name for name in fields[2:] if name in mapping and mapping[name].column == "value"]
        if len(values) != 1:
            raise section.error("one attribute must be mapped to the column 'value'", "map")
    if into is not None:
        rule = mapping[into]
        mapping[into] = Mapping("value", None, None, rule.scale, rule.offset, rule.round, rule.sentinels, rule.case)
    return mapping


def _mapping(section: Section, name: str, fields: tuple[str, ...]) -> Mapping:
    value = section.data[name]
    if not isinstance(value, dict):
        return Mapping(column=str(value))
    rule = section.section(name)
    rule.only(("column", "path", "constant", "scale", "offset", "round", "sentinels", "case"))
    origins = [key for key in ("column", "path", "constant") if key in rule.data]
    if len(origins) > 1:
        raise rule.error("only one of column, path and constant can be given", origins[1])
    column = rule.get("column")
    sentinels = rule.get("sentinels", list, default=[])
    return Mapping(
        column=str(column) if column is not None else (None if origins else name),
        path=rule.get("path", str),
        constant=str(rule.data["constant"]) if "constant" in rule.data else None,
        scale=float(rule.get("scale", float, default=1.0)),
        offset=float(rule.get("offset", float, default=0.0)),
        round=rule.get("round", int),
        sentinels=tuple(_sentinel(rule, at, item, fields) for at, item in enumerate(sentinels)),
        case=rule.choice("case", ("upper", "lower"), "upper") if "case" in rule.data else None,
    )


def _sentinel(rule: Section, at: int, item: Any, fields: tuple[str, ...]) -> Sentinel:
    if isinstance(item, int | float) and not isinstance(item, bool):
        return Sentinel(float(item))
    if not isinstance(item, dict) or "value" not in item or not isinstance(item.get("when", {}), dict):
        raise rule.error("a sentinel is a number, or {value: NUMBER, when: {ATTRIBUTE: COMPARISON}}", "sentinels", at)
    when = []
    for name, condition in item.get("when", {}).items():
        found = _COMPARISON.match(str(condition))
        if name not in fields[2:] or found is None:
            hint = "E.g. {flow: 0} or {flow: '> 0'}."
            raise rule.error(f"condition '{name}: {condition}' is not understood", "sentinels", at, hint=hint)
        when.append((str(name), found[1] or "=", float(found[2])))
    return Sentinel(float(item["value"]), tuple(when))
