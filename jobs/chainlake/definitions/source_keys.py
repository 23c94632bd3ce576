"""The keys of a source's file, each with the checks that keep wrong values out (docs/sources.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping as MappingType
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from chainlake.definitions.derived import History, parse_history
from chainlake.definitions.files import WORD
from chainlake.definitions.formats.format import Format, date_from_path
from chainlake.definitions.formats.globs import expect_problem
from chainlake.definitions.formats.path_groups import digits_of_group, field_problem
from chainlake.definitions.formats.time_formats import is_clock, problem_of
from chainlake.definitions.source_errors import WrongAttribute, WrongName, WrongPath, WrongScope, WrongType
from chainlake.definitions.yaml_lines import Section
from chainlake.digests import text_digest
from chainlake.schemas.table import TIMESTAMP
from chainlake.words import closest

TYPES = {
    "double": pa.float64(),
    "long": pa.int64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": TIMESTAMP,
}
#: Columns that ``raw`` or ``events`` always have, and ``id``, which patterns use: no attribute may have these names.
FIXED = (
    "id", "event_id", "type", "ts", "seq", "event_date", "file_id", "line", "entry", "load_id", "ingested_at",
)  # fmt: skip
#: The keys of a source, and whether one says which events a file gives: an edit of such a key reads the files again
#: (docs/sources.md).
KEYS = {
    "description": False, "key": True, "type": True, "zone": True, "attributes": True, "identity": True,
    "delivery": True, "on_conflict": True, "replaces": True, "path": True, "file_date_zone": True, "expect": False,
    "lag": False, "settle": False, "links": False, "derived": False, "formats": True,
}  # fmt: skip
#: The same of an attribute.
ATTRIBUTE_KEYS = {"type": True, "unit": True, "description": False, "required": True, "min": True, "max": True}

#: What identifies an event; whether files repeat one another's rows; which of several rows of one event counts. The
#: first word of each is what a source has that does not say.
IDENTITIES = ("unique", "multiset")
DELIVERIES = ("overlapping", "disjoint")
CONFLICTS = ("first", "latest", "quarantine_all")
#: What becomes of a symbolic link in the landing folder.
LINKS = ("refuse", "follow")

#: Fields of a path that have a special meaning.
PATH_FIELDS = ("date", "key", "revision")


@dataclass(frozen=True)
class Attribute:
    """One typed attribute of a source's events.

    Args:
        name: column name.
        type: a key of ``TYPES``.
        unit: unit of the stored value.
        description: what it is.
        required: whether a row without it goes to quarantine.
        low, high: bounds; a row with a value outside them goes to quarantine.
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
    """Where an event's type comes from: a constant, a column, or a column through a map (other texts: quarantine)."""

    constant: str | None
    map: dict[str, str] | None


@dataclass(frozen=True)
class PathRule:
    """Fields of a path by regular expression; ``date``, ``key`` and ``revision`` have a meaning (docs/sources.md)."""

    pattern: str | None
    date_format: str


def words(section: Section, key: str) -> str | None:
    """The value of a key that takes a text for people, which may be blank."""
    return section.get(key, str) if section.data.get(key) is not None else None


def read_attributes(section: Section, key: str) -> tuple[Attribute, ...]:
    """Read ``attributes``; ``key`` is the name of the key column.

    Raises:
        DefinitionError: there are none, a name cannot be a column's, or no value is within the bounds.
    """
    given = section.section("attributes")
    found: list[Attribute] = []
    seen = {key.lower()}
    for name in given.data:
        if not WORD.match(name) or name.lower() in FIXED or name.lower() in seen:
            raise given.placed(WrongName.attribute(name, FIXED), name)
        seen.add(name.lower())
        item = given.section(name)
        item.only(ATTRIBUTE_KEYS)
        found.append(
            Attribute(
                name,
                item.choice("type", tuple(TYPES)),
                words(item, "unit"),
                words(item, "description"),
                item.get("required", bool, default=False),
                item.get("min", float),
                item.get("max", float),
            )
        )
        if (found[-1].low is not None or found[-1].high is not None) and found[-1].type not in ("double", "long"):
            raise item.placed(WrongAttribute.bounds_of_text(), "type")
        if found[-1].low is not None and found[-1].high is not None and found[-1].low > found[-1].high:
            raise item.placed(WrongAttribute.crossed_bounds(), "min")
    if not found:
        raise section.placed(WrongAttribute.none())
    return tuple(found)


def read_type(section: Section, formats: tuple[Format, ...]) -> TypeRule:
    """Read ``type``: a constant, or a column with or without a map.

    Raises:
        DefinitionError: no row can have a type, or a format does not read the column.
    """
    value = section.get("type", str, dict, required=True)
    mapped = [f.name for f in formats if "type" in f.mapping]
    if isinstance(value, str):
        if mapped:
            raise section.placed(WrongType.two_origins(), "type")
        if not value.strip():
            raise section.placed(WrongType.blank(), "type")
        return TypeRule(value, None)
    rule = section.section("type")
    rule.only(("map", "column"))
    for form in formats:
        if "type" not in form.mapping:
            raise rule.placed(WrongType.no_column(form.name), "column")
    if "map" not in rule.data:
        return TypeRule(None, None)
    given = rule.get("map", dict)
    if not given:
        raise rule.placed(WrongType.empty_map(), "map")
    inner = rule.section("map")
    types = {text: str(inner.get(text, str)) for text in given}
    for text, kind in types.items():
        if not kind.strip() or text != text.strip():
            raise inner.placed(WrongType.no_type(text, kind), text)
        for case in {form.mapping["type"].case for form in formats} - {None}:
            if text != (text.upper() if case == "upper" else text.lower()):
                raise inner.placed(WrongType.never_met(text, case), text)
    return TypeRule(None, types)


def read_path(section: Section, formats: tuple[Format, ...]) -> tuple[PathRule, set[str]]:
    """Read ``path``; return it with the names of its fields.

    Raises:
        DefinitionError: it is not a regular expression, has no meaningful field, or its date format is not one.
    """
    if "path" not in section.data:
        return PathRule(None, ""), set()
    where, keys = section, ("path",)
    if isinstance(section.data["path"], dict):
        where, keys = section.section("path"), ("pattern",)
        where.only(("pattern", "date_format"))
    pattern = where.get(keys[0], str, required=True)
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise where.placed(WrongPath.no_expression(error), *keys) from None
    groups = set(compiled.groupindex)
    used = {rule.path for form in formats for rule in form.mapping.values()} | set(PATH_FIELDS)
    if not groups & used:
        raise where.placed(WrongPath.no_field(), *keys)
    for name in sorted(groups - used):
        near = closest(name, sorted(set(PATH_FIELDS) - groups), 0.7)
        if near is not None:
            raise where.placed(WrongPath.unknown_field(name, near), *keys)
    date_format = "" if where is section else where.get("date_format", str, default="")
    if date_format:
        problem = problem_of(date_format)
        if problem is not None or is_clock(date_format) or "%z" in date_format:
            what = None if problem is None else problem.what
            raise where.placed(WrongPath.date_format(date_format, what), "date_format")
        if "date" not in groups:
            raise where.placed(WrongPath.no_date(), "date_format")
    for name in sorted(groups & set(PATH_FIELDS)):
        problem = field_problem(name, digits_of_group(compiled, name), date_format)
        if problem is not None:
            raise where.placed(WrongPath.field(problem.what, problem.hint), *keys)
    return PathRule(pattern, date_format), groups


def check_path_fields(
    section: Section, formats: tuple[Format, ...], path: PathRule, groups: set[str], attributes: tuple[Attribute, ...]
) -> None:
    """Raise ``DefinitionError`` if a format needs a field that ``path``, with its ``groups``, cannot give."""
    numeric = {a.name: a.type for a in attributes if a.type in ("double", "long", "timestamp")}
    for at, form in enumerate(formats):
        for name, mapping in form.mapping.items():
            if mapping.path is not None and mapping.path not in groups:
                raise section.placed(WrongPath.lacking_field(name, mapping.path), "formats", at, "map", name)
            if mapping.path is None or path.pattern is None or name not in numeric:
                continue
            if not digits_of_group(re.compile(path.pattern), mapping.path).most:
                raise section.placed(WrongPath.no_digits(name, numeric[name], mapping.path), "formats", at, "map", name)
        if "date" not in groups and "around" in section.data["formats"][at].get("time", {}):
            raise section.placed(WrongPath.around_no_date(), "formats", at, "time", "around")
        if date_from_path(form.time.format) and "date" not in groups:
            raise section.placed(WrongPath.time_of_no_day(), "formats", at, "time", "format")


def read_replaces(section: Section, groups: set[str]) -> tuple[str, ...]:
    """Read ``replaces``; date and revision must be among the ``groups`` of the path; keys come from the file's rows.

    Raises:
        DefinitionError: it is not a scope, or the path lacks the date or the revision.
    """
    scope = section.texts("replaces")
    if not scope:
        return ()
    if set(scope) not in ({"file_date"}, {"file_date", "key"}):
        raise section.placed(WrongScope.none(scope), "replaces")
    if "date" not in groups:
        raise section.placed(WrongScope.no_date(), "replaces")
    if "revision" not in groups:
        raise section.placed(WrongScope.no_revision(), "replaces")
    return scope


def read_expect(section: Section) -> tuple[str, ...]:
    """Read ``expect``.

    Raises:
        DefinitionError: a glob can match no file, or is the same for all days.
    """
    globs = section.texts("expect")
    for at, glob in enumerate(globs):
        problem = expect_problem(glob)
        if problem is not None:
            raise section.placed(WrongPath.names_no_day(glob, problem.what, problem.hint), "expect", at)
    return globs


def read_identity(section: Section) -> tuple[str, str, str]:
    """Read ``identity``, ``delivery`` and ``on_conflict``; the last two each apply to only one identity."""
    identity = section.choice("identity", IDENTITIES, IDENTITIES[0])
    delivery = section.choice("delivery", DELIVERIES, DELIVERIES[0])
    on_conflict = section.choice("on_conflict", CONFLICTS, CONFLICTS[0])
    return identity, delivery, on_conflict


def read_derived(section: Section, key: str, attributes: MappingType[str, Attribute]) -> tuple[History, ...]:
    """Read ``derived``; ``key`` and ``attributes`` are the other columns.

    Raises:
        DefinitionError: a column is not a history of a numeric attribute, or its name is taken.
    """
    given = section.section("derived")
    taken = {name.lower() for name in (*FIXED, key, *attributes)}
    found = []
    for name in given.data:
        one = parse_history(name, given.get(name, str, required=True))
        if one is None or one.of not in attributes:
            raise given.placed(WrongAttribute.no_history(name), name)
        if one.count > 1 and one.max_gap_us == 0:
            raise given.placed(WrongAttribute.no_gap(name), name)
        if attributes[one.of].type not in ("double", "long"):
            raise given.placed(WrongAttribute.history_of(one.of, attributes[one.of].type), name)
        if not WORD.match(name) or name.lower() in taken:
            raise given.placed(WrongName.derived(name, FIXED), name)
        taken.add(name.lower())
        found.append(one)
    return tuple(found)


def hash_of(section: Section) -> str:
    """Hash of everything in the definition that can change which events a file gives."""
    kept = {key: _as_typed(section, key) for key in section.data if KEYS[key]}
    kept["attributes"] = {
        name: {key: value for key, value in item.items() if ATTRIBUTE_KEYS[key]}
        for name, item in kept["attributes"].items()
    }
    text = json.dumps(kept, sort_keys=True, ensure_ascii=True)
    return text_digest(text)


def _as_typed(section: Section, *keys: str | int) -> Any:
    """The text that was typed for a value, even if it reads as a number: 1.50 and 1.5 are different names."""
    value: Any = section.data
    for key in keys:
        value = value[key]
    if isinstance(value, dict):
        return {key: _as_typed(section, *keys, key) for key in value}
    if isinstance(value, list):
        return [_as_typed(section, *keys, at) for at in range(len(value))]
    typed = section.typed(*keys)
    return value if isinstance(value, bool) or typed == str(value) else typed
