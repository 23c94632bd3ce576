"""Sources: one YAML file per stream of events (design §3). Read here, used by every part; no Spark."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping as MappingType
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs.errors import DefinitionError, UsageError
from jobs.history import History, parse_duration, parse_history
from jobs.ingest.formats import DATE_FIELD, Format, Mapping, check_zone, read_format
from jobs.paths import Home
from jobs.yaml_lines import Section, load_section
from schemas.table import TIMESTAMP

TYPES = {
    "double": pa.float64(),
    "long": pa.int64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": TIMESTAMP,
}
#: Columns that ``raw`` or ``events`` have anyway, and ``id``, which patterns use: no attribute may be called so.
FIXED = (
    "id", "event_id", "type", "ts", "seq", "event_date", "file_id", "line", "entry", "load_id", "ingested_at",
)  # fmt: skip
#: Keys that do not change which rows a file gives; an edit of them does not take the files again (design §3).
NOT_HASHED = ("description", "expect", "lag", "settle", "derived", "links")

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_KEYS = (
    "description", "key", "type", "zone", "attributes", "identity", "delivery", "on_conflict", "replaces", "path",
    "file_date_zone", "expect", "lag", "settle", "links", "derived", "formats",
)  # fmt: skip


@dataclass(frozen=True)
class Attribute:
    """One typed attribute of a source's events.

    Args:
        name: column name.
        type: a key of ``TYPES``.
        unit: unit of the stored value.
        description: what it is.
        required: a row without it goes to quarantine.
        low, high: bounds outside which a row goes to quarantine.
    """

    name: str
    type: str
    unit: str | None = None
    description: str | None = None
    required: bool = False
    low: float | None = None
    high: float | None = None

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type of the column."""
        return TYPES[self.type]


@dataclass(frozen=True)
class TypeRule:
    """Where an event's type comes from: a constant, a column, or a column through a map (others: quarantine)."""

    constant: str | None
    map: dict[str, str] | None


@dataclass(frozen=True)
class PathRule:
    """Fields of a path by regular expression; ``date``, ``key`` and ``revision`` have a meaning (design §3)."""

    pattern: str | None
    date_format: str


@dataclass(frozen=True)
class Source:
    """One source (design §3); fields as the keys of its YAML file, durations as ``timedelta``.

    ``follow_links`` is its key ``links``.
    """

    name: str
    file: str
    description: str
    key: str
    type: TypeRule
    zone: str
    attributes: tuple[Attribute, ...]
    identity: str
    delivery: str
    on_conflict: str
    replaces: tuple[str, ...]
    path: PathRule
    file_date_zone: str
    expect: tuple[str, ...]
    lag: timedelta
    settle: timedelta
    follow_links: bool
    derived: tuple[History, ...]
    formats: tuple[Format, ...]
    definition_hash: str

    @property
    def types(self) -> tuple[str, ...] | None:
        """The types that events can have, or ``None`` if any text of a column can be one."""
        if self.type.constant is not None:
            return (self.type.constant,)
        return tuple(sorted(set(self.type.map.values()))) if self.type.map is not None else None

    def event_columns(self) -> dict[str, pa.DataType]:
        """The columns of events that patterns and models may reference, with their types."""
        return {
            "type": pa.string(),
            self.key: pa.string(),
            "ts": TIMESTAMP,
            "seq": pa.int64(),
            **{a.name: a.arrow_type for a in self.attributes},
        }

    def pattern_columns(self) -> dict[str, pa.DataType]:
        """What patterns may reference: the events' columns, and histories, which are computed when events are read."""
        return {**self.event_columns(), **{one.name: pa.list_(pa.float64()) for one in self.derived}}

    def attribute(self, name: str) -> Attribute:
        """The attribute called ``name``."""
        return next(a for a in self.attributes if a.name == name)


class Sources(dict[str, Source]):
    """The sources whose files can be read, by name, and in ``broken`` the error of each file that cannot."""

    def __init__(self, *sources: Source) -> None:
        super().__init__({source.name: source for source in sources})
        self.broken: dict[str, DefinitionError] = {}


def load_sources(home: Home) -> Sources:
    """All sources of ``<config>/sources``: a file that is wrong must not stop the sources beside it."""
    found = Sources()
    for name, path in _files(home).items():
        try:
            found[name] = load_source(path)
        except DefinitionError as error:
            found.broken[name] = error
    return found


def source_for(sources: Sources, name: str, definition: Path, line: int | None = None) -> Source:
    """The source that the file ``definition`` names in its line ``line``.

    Raises:
        DefinitionError: there is none, or its own file is wrong.
    """
    if name in sources:
        return sources[name]
    if name in sources.broken:
        raise DefinitionError(
            f"its source '{name}' cannot be used: {sources.broken[name].summary}",
            file=definition,
            line=line,
            key="source",
            hint="Mend the source's file first.",
        )
    raise DefinitionError(
        f"there is no source '{name}'",
        file=definition,
        line=line,
        key="source",
        hint=f"Sources are {', '.join(sorted(sources)) or 'none yet'}; they are files of dags/config/sources.",
    )


def find_source(home: Home, name: str) -> Source:
    """The source that a definition names.

    Raises:
        DefinitionError: there is none, or its file is wrong.
    """
    files = _files(home)
    if name not in files:
        raise DefinitionError(f"there is no source '{name}'", hint=_known(home, files))
    return load_source(files[name])


def asked_source(home: Home, name: str) -> Source:
    """The source that somebody names on a command line.

    Raises:
        UsageError: there is none.
        DefinitionError: its file is wrong.
    """
    files = _files(home)
    if name not in files:
        raise UsageError(f"there is no source '{name}'", hint=_known(home, files))
    return load_source(files[name])


def _files(home: Home) -> dict[str, Path]:
    return {path.stem: path for path in sorted((home.config / "sources").glob("*.yaml"))}


def _known(home: Home, files: MappingType[str, Path]) -> str:
    return f"Sources are {', '.join(files) or 'none yet'}; they are files of {home.config / 'sources'}."


def load_source(path: Path) -> Source:
    """The source described by the YAML file ``path``; its name is the file's.

    Raises:
        DefinitionError: with file, line, key and the allowed values.
    """
    section = load_section(path)
    section.only(_KEYS)
    if not _NAME.match(path.stem):
        raise section.error(f"'{path.stem}' cannot be the name of a source", hint="Letters, digits and _ only.")
    key = section.get("key", str, required=True)
    if not _NAME.match(key) or key.lower() in FIXED:
        raise section.error(f"'{key}' cannot be the name of the key column", "key", hint=_fixed_hint())
    attributes = _attributes(section, key)
    zone = section.get("zone", str, default="UTC")
    check_zone(section, "zone", zone)
    file_date_zone = section.get("file_date_zone", str, default=zone)
    check_zone(section, "file_date_zone", file_date_zone)
    fields = ("type", key, *(a.name for a in attributes))
    formats = tuple(read_format(item, at, fields, zone) for at, item in enumerate(section.sections("formats")))
    if not formats:
        raise section.error("'formats' is missing", hint="List at least one format with time and columns.")
    type_rule = _type(section, formats)
    path_rule, groups = _path(section)
    _check_path_fields(section, formats, groups)
    return Source(
        name=path.stem,
        file=str(path),
        description=section.get("description", str, default=""),
        key=key,
        type=type_rule,
        zone=zone,
        attributes=attributes,
        identity=section.choice("identity", ("unique", "multiset"), "unique"),
        delivery=section.choice("delivery", ("overlapping", "disjoint"), "overlapping"),
        on_conflict=section.choice("on_conflict", ("first", "latest", "quarantine_all"), "first"),
        replaces=_replaces(section, groups),
        path=path_rule,
        file_date_zone=file_date_zone,
        expect=_expect(section),
        lag=_duration(section, "lag", "0 s"),
        settle=_duration(section, "settle", "0 s"),
        follow_links=section.choice("links", ("refuse", "follow"), "refuse") == "follow",
        derived=_derived(section, key, {a.name: a for a in attributes}),
        formats=formats,
        definition_hash=_hash(section.data),
    )


def _fixed_hint() -> str:
    return f"A name of letters, digits and _, none of: {', '.join(FIXED)}."


def _attributes(section: Section, key: str) -> tuple[Attribute, ...]:
    given = section.section("attributes")
    found: list[Attribute] = []
    seen = {key.lower()}
    for name in given.data:
        if not _NAME.match(name) or name.lower() in FIXED or name.lower() in seen:
            raise given.error(f"'{name}' cannot be the name of an attribute", name, hint=_fixed_hint())
        seen.add(name.lower())
        item = given.section(name)
        item.only(("type", "unit", "description", "required", "min", "max"))
        found.append(
            Attribute(
                name,
                item.choice("type", tuple(TYPES)),
                item.get("unit", str),
                item.get("description", str),
                item.get("required", bool, default=False),
                item.get("min", float),
                item.get("max", float),
            )
        )
        if (found[-1].low is not None or found[-1].high is not None) and found[-1].type not in ("double", "long"):
            raise item.error("min and max need a number", "type", hint="Type double or long.")
    if not found:
        raise section.error("'attributes' is missing", hint="List at least one, e.g. value: {type: double}.")
    return tuple(found)


def _type(section: Section, formats: tuple[Format, ...]) -> TypeRule:
    value = section.get("type", str, dict, required=True)
    mapped = [f.name for f in formats if "type" in f.mapping]
    if isinstance(value, str):
        if mapped:
            raise section.error("type is a constant here, but a format maps it to a column", "type")
        return TypeRule(value, None)
    rule = section.section("type")
    rule.only(("map", "column"))
    column = rule.get("column", str)
    values = rule.get("map", dict)
    for form in formats:
        if "type" not in form.mapping and column is None:
            hint = "E.g. type: {column: kind}."
            raise rule.error(f"no column for the type in format '{form.name}'", "column", hint=hint)
    if column is not None:
        for form in formats:
            form.mapping.setdefault("type", Mapping(column=column))
    return TypeRule(None, {str(k): str(v) for k, v in values.items()} if values is not None else None)


def _path(section: Section) -> tuple[PathRule, set[str]]:
    if "path" not in section.data:
        return PathRule(None, ""), set()
    if isinstance(section.data["path"], str):
        pattern, date_format, where = section.data["path"], "", section
    else:
        where = section.section("path")
        where.only(("pattern", "date_format"))
        pattern, date_format = where.get("pattern", str, required=True), where.get("date_format", str, default="")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise section.error(f"not a regular expression: {error}", "path") from error
    return PathRule(pattern, date_format), set(compiled.groupindex)


def _check_path_fields(section: Section, formats: tuple[Format, ...], groups: set[str]) -> None:
    for at, form in enumerate(formats):
        for name, mapping in form.mapping.items():
            if mapping.path is not None and mapping.path not in groups:
                raise section.error(
                    f"'{name}' comes from the path field '{mapping.path}', which 'path' does not define",
                    "formats", at, "map", name,
                    hint=f"Name it in the expression: (?P<{mapping.path}>…).",
                )  # fmt: skip
        if form.time.format.endswith("_of_day") and "date" not in groups:
            raise section.error("times of day need a date in the path", "formats", at, "time", "format")


def _replaces(section: Section, groups: set[str]) -> tuple[str, ...]:
    scope = section.texts("replaces")
    if not scope:
        return ()
    if set(scope) not in ({"file_date"}, {"file_date", "key"}):
        raise section.error(f"{list(scope)} is not a scope", "replaces", hint="[file_date] or [file_date, key].")
    if "date" not in groups:
        raise section.error("replaces needs the file's date", "replaces", hint="Define (?P<date>…) in 'path'.")
    return scope


def _expect(section: Section) -> tuple[str, ...]:
    globs = section.texts("expect")
    for at, glob in enumerate(globs):
        rest = DATE_FIELD.sub("", glob)
        if "{" in rest or "}" in rest:
            hint = "E.g. bars_{date:%Y%m%d}.csv, {date-1}."
            raise section.error(f"'{glob}' is not understood", "expect", at, hint=hint)
    return globs


def _duration(section: Section, key: str, default: str) -> timedelta:
    value = parse_duration(section.get(key, str, default=default))
    if value is None:
        raise section.error(f"'{section.data[key]}' is not a duration", key, hint="E.g. 90 s, 15 min, 6 h or 2 d.")
    return value


def _derived(section: Section, key: str, attributes: MappingType[str, Attribute]) -> tuple[History, ...]:
    given = section.section("derived")
    taken = {name.lower() for name in (*FIXED, key, *attributes)}
    found = []
    for name in given.data:
        one = parse_history(name, given.get(name, str, required=True))
        if one is None or one.of not in attributes:
            raise given.error(
                f"derived column '{name}' is not understood",
                name,
                hint="E.g. last_prices: history(price, 5, 10 min): an attribute, how many values, the longest gap.",
            )
        if attributes[one.of].type not in ("double", "long"):
            raise given.error(f"a history is of numbers, and {one.of} is a {attributes[one.of].type}", name)
        if not _NAME.match(name) or name.lower() in taken:
            raise given.error(f"'{name}' cannot be the name of a derived column", name, hint=_fixed_hint())
        taken.add(name.lower())
        found.append(one)
    return tuple(found)


def _hash(data: dict[str, Any]) -> str:
    kept = {key: value for key, value in data.items() if key not in NOT_HASHED}
    kept["attributes"] = {
        name: {key: value for key, value in item.items() if key != "description"}
        for name, item in data["attributes"].items()
    }
    text = json.dumps(kept, sort_keys=True, default=str, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
