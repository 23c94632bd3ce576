"""The keys of a source's file, each read with the question: which wrong value would pass here? (docs/sources.md)"""

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
#: Columns that ``raw`` or ``events`` have anyway, and ``id``, which patterns use: no attribute may be called so.
FIXED = (
    "id", "event_id", "type", "ts", "seq", "event_date", "file_id", "line", "entry", "load_id", "ingested_at",
)  # fmt: skip
#: Keys that do not change which rows a file gives; an edit of them does not take the files again (docs/sources.md).
NOT_HASHED = ("description", "expect", "lag", "settle", "derived", "links")

#: Fields of a path that have a meaning of their own.
PATH_FIELDS = ("date", "key", "revision")


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
    """Fields of a path by regular expression; ``date``, ``key`` and ``revision`` have a meaning (docs/sources.md)."""

    pattern: str | None
    date_format: str


def words(section: Section, key: str) -> str | None:
    """A text for people, which may be blank."""
    return section.get(key, str) if section.data.get(key) is not None else None


def fixed_hint() -> str:
    """What a name of a column is."""
    return f"Names consist of the letters a to z, digits and _, and begin with a letter; reserved: {', '.join(FIXED)}."


def read_attributes(section: Section, key: str) -> tuple[Attribute, ...]:
    """``attributes``; ``key`` is the name of the key column.

    Raises:
        DefinitionError: none, a name that cannot be a column, or bounds that nothing is within.
    """
    given = section.section("attributes")
    found: list[Attribute] = []
    seen = {key.lower()}
    for name in given.data:
        if not WORD.match(name) or name.lower() in FIXED or name.lower() in seen:
            raise given.error(f"'{name}' cannot be the name of an attribute", name, hint=fixed_hint())
        seen.add(name.lower())
        item = given.section(name)
        item.only(("type", "unit", "description", "required", "min", "max"))
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
            raise item.error("min and max need a number", "type", hint="Type double or long.")
        if found[-1].low is not None and found[-1].high is not None and found[-1].low > found[-1].high:
            raise item.error("min is above max, so every row would be out of range", "min")
    if not found:
        raise section.error("'attributes' is missing", hint="List at least one, e.g. value: {type: double}.")
    return tuple(found)


def read_type(section: Section, formats: tuple[Format, ...]) -> TypeRule:
    """``type``: a constant, or a column with or without a map.

    Raises:
        DefinitionError: a type that no row can have, or a column that a format does not read.
    """
    value = section.get("type", str, dict, required=True)
    mapped = [f.name for f in formats if "type" in f.mapping]
    if isinstance(value, str):
        if mapped:
            raise section.error("type is a constant here, but a format maps it to a column", "type")
        if not value.strip():
            raise section.error("a type must not be blank", "type", hint="E.g. Bar.")
        return TypeRule(value, None)
    rule = section.section("type")
    rule.only(("map", "column"))
    for form in formats:
        if "type" not in form.mapping:
            hint = "E.g. type: {column: kind}."
            raise rule.error(f"no column for the type in format '{form.name}'", "column", hint=hint)
    if "map" not in rule.data:
        return TypeRule(None, None)
    given = rule.get("map", dict)
    if not given:
        raise rule.error("the map of types is empty", "map", hint="E.g. {T: Trade}, or leave it out.")
    inner = rule.section("map")
    types = {text: str(inner.get(text, str)) for text in given}
    for text, kind in types.items():
        if not kind.strip() or text != text.strip():
            raise inner.error(f"'{text}: {kind}' is no type, or has white space around it", text)
        for case in {form.mapping["type"].case for form in formats} - {None}:
            if text != (text.upper() if case == "upper" else text.lower()):
                raise inner.error(f"'{text}' is never met: the format makes all types {case} case", text)
    return TypeRule(None, types)


def read_path(section: Section, formats: tuple[Format, ...]) -> tuple[PathRule, set[str]]:
    """``path`` and the names of its fields.

    Raises:
        DefinitionError: no regular expression, no field that means anything, or no format of a date.
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
        raise where.error(f"not a regular expression: {error}", *keys) from None
    groups = set(compiled.groupindex)
    used = {rule.path for form in formats for rule in form.mapping.values()} | set(PATH_FIELDS)
    if not groups & used:
        hint = r"E.g. 'bars_(?P<date>\d{8})'; without fields leave 'path' out."
        raise where.error("no field of the path is named", *keys, hint=hint)
    for name in sorted(groups - used):
        near = closest(name, sorted(set(PATH_FIELDS) - groups), 0.7)
        if near is not None:
            raise where.error(f"the field '{name}' means nothing, and '{near}' is not defined", *keys)
    date_format = "" if where is section else where.get("date_format", str, default="")
    if date_format:
        problem = problem_of(date_format)
        if problem is not None or is_clock(date_format) or "%z" in date_format:
            what = problem.what if problem is not None else "gives no date alone"
            raise where.error(f"date format '{date_format}' {what}", "date_format", hint="E.g. '%d%m%y'.")
        if "date" not in groups:
            raise where.error("there is no date in the path", "date_format", hint="Define (?P<date>…) in 'pattern'.")
    for name in sorted(groups & set(PATH_FIELDS)):
        problem = field_problem(name, digits_of_group(compiled, name), date_format)
        if problem is not None:
            raise where.error(problem.what, *keys, hint=problem.hint)
    return PathRule(pattern, date_format), groups


def check_path_fields(
    section: Section, formats: tuple[Format, ...], path: PathRule, groups: set[str], attributes: tuple[Attribute, ...]
) -> None:
    """Raise ``DefinitionError`` where a format needs a field that ``path``, with its ``groups``, cannot give."""
    numeric = {a.name: a.type for a in attributes if a.type in ("double", "long", "timestamp")}
    for at, form in enumerate(formats):
        for name, mapping in form.mapping.items():
            if mapping.path is not None and mapping.path not in groups:
                raise section.error(
                    f"'{name}' comes from the path field '{mapping.path}', which 'path' does not define",
                    "formats", at, "map", name,
                    hint=f"Name it in the expression: (?P<{mapping.path}>…).",
                )  # fmt: skip
            if mapping.path is None or path.pattern is None or name not in numeric:
                continue
            if not digits_of_group(re.compile(path.pattern), mapping.path).most:
                raise section.error(
                    f"'{name}' is a {numeric[name]}, and the path field '{mapping.path}' can match no digits",
                    "formats", at, "map", name,
                    hint=rf"E.g. (?P<{mapping.path}>\d+), or type: string.",
                )  # fmt: skip
        if "date" not in groups and "around" in section.data["formats"][at].get("time", {}):
            raise section.error(
                "'around' is measured from the date in the file's path, which names none", "formats", at, "time",
                "around", hint="Define (?P<date>…) in 'path', or write earliest and latest.",
            )  # fmt: skip
        if date_from_path(form.time.format) and "date" not in groups:
            raise section.error(
                "times of day need a date in the path", "formats", at, "time", "format",
                hint="Define (?P<date>…) in 'path', or read the date too: time: {column: [day, time], …}.",
            )  # fmt: skip


def read_replaces(section: Section, groups: set[str]) -> tuple[str, ...]:
    """``replaces``; date and revision must be among the ``groups`` of the path, keys are those of the file's rows.

    Raises:
        DefinitionError: no scope, or the path does not tell the date or the revision.
    """
    scope = section.texts("replaces")
    if not scope:
        return ()
    if set(scope) not in ({"file_date"}, {"file_date", "key"}):
        raise section.error(f"{list(scope)} is not a scope", "replaces", hint="[file_date] or [file_date, key].")
    if "date" not in groups:
        raise section.error("replaces needs the file's date", "replaces", hint="Define (?P<date>…) in 'path'.")
    if "revision" not in groups:
        hint = "Define (?P<revision>…) in 'path'; only a higher revision replaces a lower one."
        raise section.error("replaces needs the file's revision", "replaces", hint=hint)
    return scope


def read_expect(section: Section) -> tuple[str, ...]:
    """``expect``.

    Raises:
        DefinitionError: a glob that can fit no file, or those of all days.
    """
    globs = section.texts("expect")
    for at, glob in enumerate(globs):
        problem = expect_problem(glob)
        if problem is not None:
            raise section.error(f"'{glob}' names no file of a day: it {problem.what}", "expect", at, hint=problem.hint)
    return globs


def read_identity(section: Section) -> tuple[str, str, str]:
    """``identity``, ``delivery`` and ``on_conflict``; the last two each apply to one identity only."""
    identity = section.choice("identity", ("unique", "multiset"), "unique")
    delivery = section.choice("delivery", ("overlapping", "disjoint"), "overlapping")
    on_conflict = section.choice("on_conflict", ("first", "latest", "quarantine_all"), "first")
    return identity, delivery, on_conflict


def read_derived(section: Section, key: str, attributes: MappingType[str, Attribute]) -> tuple[History, ...]:
    """``derived``; ``key`` and ``attributes`` are the other columns.

    Raises:
        DefinitionError: no history of a numeric attribute, or a name that is taken.
    """
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
        if one.count > 1 and one.max_gap_us == 0:
            raise given.error(f"'{name}' never has a value: no two events lie within a gap of 0", name)
        if attributes[one.of].type not in ("double", "long"):
            raise given.error(f"a history is of numbers, and {one.of} is a {attributes[one.of].type}", name)
        if not WORD.match(name) or name.lower() in taken:
            raise given.error(f"'{name}' cannot be the name of a derived column", name, hint=fixed_hint())
        taken.add(name.lower())
        found.append(one)
    return tuple(found)


def hash_of(section: Section) -> str:
    """Hash of all that can change which events a file gives."""
    kept = {key: _as_typed(section, key) for key in section.data if key not in NOT_HASHED}
    kept["attributes"] = {
        name: {key: value for key, value in item.items() if key != "description"}
        for name, item in kept["attributes"].items()
    }
    text = json.dumps(kept, sort_keys=True, ensure_ascii=True)
    return text_digest(text)


def _as_typed(section: Section, *keys: str | int) -> Any:
    """The text that was typed for a value, also where it reads as a number: 1.50 and 1.5 are two names."""
    value: Any = section.data
    for key in keys:
        value = value[key]
    if isinstance(value, dict):
        return {key: _as_typed(section, *keys, key) for key in value}
    if isinstance(value, list):
        return [_as_typed(section, *keys, at) for at in range(len(value))]
    typed = section.typed(*keys)
    return value if isinstance(value, bool) or typed == str(value) else typed
