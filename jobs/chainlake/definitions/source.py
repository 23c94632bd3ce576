"""Sources: one YAML file per stream of events (docs/sources.md). They are read here and used everywhere; no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from chainlake.definitions.derived import History, Series
from chainlake.definitions.duration import parse_span
from chainlake.definitions.errors import SourceBroken, UnknownSource, UnknownSourceAsked
from chainlake.definitions.files import WORD, check_name
from chainlake.definitions.formats.format import Format, check_zone, read_format
from chainlake.definitions.source_errors import WrongName, WrongSource
from chainlake.definitions.source_keys import (
    FIXED,
    KEYS,
    LINKS,
    Attribute,
    PathRule,
    TypeRule,
    check_path_fields,
    hash_of,
    read_attributes,
    read_derived,
    read_expect,
    read_identity,
    read_path,
    read_replaces,
    read_type,
    words,
)
from chainlake.definitions.yaml_lines import Section, load_section
from chainlake.errors import DefinitionError
from chainlake.paths import Home
from chainlake.schemas.table import TIMESTAMP


@dataclass(frozen=True)
class Source:
    """One source. Its fields are the keys of its YAML file, with durations as ``timedelta``.

    ``follow_links`` comes from the key ``links``.
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
        """The types that events can have, or ``None`` if any text of a column can be a type."""
        if self.type.constant is not None:
            return (self.type.constant,)
        return tuple(sorted(set(self.type.map.values()))) if self.type.map is not None else None

    @property
    def series(self) -> Series:
        """The key of the events, and the columns derived per key."""
        return Series(self.key, self.derived)

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
    """All sources in ``<config>/sources``; a file that is wrong does not stop the others."""
    found = Sources()
    for name, path in _files(home).items():
        try:
            found[name] = load_source(path)
        except DefinitionError as error:
            found.broken[name] = error
    return found


def source_for(sources: Sources, name: str, definition: Path, line: int | None = None) -> Source:
    """The source that the file ``definition`` names on its line ``line``.

    Raises:
        DefinitionError: there is no such source, or its own file is wrong.
    """
    if name in sources:
        return sources[name]
    if name in sources.broken:
        raise SourceBroken.of(name, sources.broken[name], definition, line)
    raise UnknownSource.of(name, sorted(sources), "dags/config/sources", file=definition, line=line)


def find_source(home: Home, name: str) -> Source:
    """The source that a definition names.

    Raises:
        DefinitionError: there is no such source, or its file is wrong.
    """
    files = _files(home)
    if name not in files:
        raise UnknownSource.of(name, list(files), home.config / "sources")
    return load_source(files[name])


def asked_source(home: Home, name: str) -> Source:
    """The source that a command line names.

    Raises:
        UsageError: there is no such source.
        DefinitionError: its file is wrong.
    """
    require_source(home, name)
    return load_source(_files(home)[name])


def require_source(home: Home, name: str) -> None:
    """Make sure that the source that a command line names has a file, before anything is begun.

    Raises:
        UsageError: there is no such source.
    """
    files = _files(home)
    if name not in files:
        raise UnknownSourceAsked.of(name, list(files), home.config / "sources")


def _files(home: Home) -> dict[str, Path]:
    return {path.stem: path for path in sorted((home.config / "sources").glob("*.yaml"))}


def load_source(path: Path) -> Source:
    """The source described by the YAML file ``path``; its name is the file's.

    Raises:
        DefinitionError: the file is wrong; the message has file, line, key and the allowed values.
    """
    check_name(path, "source", WORD)
    section = load_section(path)
    section.only(KEYS)
    key = section.get("key", str, required=True)
    if not WORD.match(key) or key.lower() in FIXED:
        raise section.placed(WrongName.key_column(key, FIXED), "key")
    attributes = read_attributes(section, key)
    zone = section.get("zone", str, default="UTC")
    check_zone(section, "zone", zone)
    file_date_zone = section.get("file_date_zone", str, default=zone)
    check_zone(section, "file_date_zone", file_date_zone)
    fields = {"type": "string", key: "string", **{a.name: a.type for a in attributes}}
    given = section.data.get("type")
    type_column = section.section("type").get("column", str) if isinstance(given, dict) else None
    listed = enumerate(section.sections("formats"))
    formats = tuple(read_format(item, at, fields, zone, type_column) for at, item in listed)
    if not formats:
        raise section.placed(WrongSource.no_formats())
    type_rule = read_type(section, formats)
    path_rule, groups = read_path(section, formats)
    check_path_fields(section, formats, path_rule, groups, attributes)
    identity, delivery, on_conflict = read_identity(section)
    return Source(
        name=path.stem,
        file=str(path),
        description=words(section, "description") or "",
        key=key,
        type=type_rule,
        zone=zone,
        attributes=attributes,
        identity=identity,
        delivery=delivery,
        on_conflict=on_conflict,
        replaces=read_replaces(section, groups),
        path=path_rule,
        file_date_zone=file_date_zone,
        expect=read_expect(section),
        lag=_duration(section, "lag", "0 s"),
        settle=_duration(section, "settle", "0 s"),
        follow_links=section.choice("links", LINKS, LINKS[0]) == "follow",
        derived=read_derived(section, key, {a.name: a for a in attributes}),
        formats=formats,
        definition_hash=hash_of(section),
    )


def _duration(section: Section, key: str, default: str) -> timedelta:
    value = parse_span(section.get(key, str, default=default))
    if value is None:
        raise section.placed(WrongSource.no_duration(section.data[key]), key)
    return value
