"""Where the values of a source's rows come from: ``map`` and ``unpivot`` of a format, as data (docs/sources.md)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping as Fields
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from chainlake.definitions.formats.errors import WrongConstant, WrongMapping, WrongSentinel, WrongUnpivot
from chainlake.definitions.yaml_lines import Section
from chainlake.words import closest, squashed

_COMPARISON = re.compile(r"\s*(<=|>=|<|>|=)?\s*(-?\d+(?:\.\d+)?)\s*\Z")
_NUMBERS = ("double", "long")
#: How a number must be written, in a cell and as a constant.
NUMBER = re.compile(r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$")
#: Up to here, a double can hold every whole number.
LARGEST_LONG = 2**53
#: The strings of a boolean, in upper or lower case.
TRUE = ("true", "t", "yes", "y", "1")
FALSE = ("false", "f", "no", "n", "0")
#: Keys that apply only to numbers.
_OF_NUMBERS = ("scale", "offset", "round", "sentinels")
#: The keys of a sentinel that is a map.
SENTINEL_KEYS = ("value", "when")
#: The most digits after the point, or zeros before it, to which a double can be rounded.
_MOST_DIGITS = 15


@dataclass(frozen=True)
class Sentinel:
    """A number that means "no value", perhaps only if other attributes have certain values.

    Args:
        value: the number as written in the file.
        when: comparisons (attribute, operator, number) that must all hold in the row, e.g. ``("flow", "=", 0.0)``.
    """

    value: float
    when: tuple[tuple[str, str, float], ...] = ()


@dataclass(frozen=True)
class Mapping:
    """Where the value of an attribute (or of type or key) comes from.

    Args:
        column: column of the file, or ``None``.
        path: field of the path, or ``None``.
        constant: a fixed text, or ``None``.
        scale, offset: unit conversion ``value * scale + offset``.
        round: decimals kept after the conversion, or ``None`` for all.
        sentinels: numbers that mean "no value", before the conversion.
        case: ``upper``, ``lower`` or ``None`` to leave the text unchanged.
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
class Needed:
    """A column of the file that a format reads.

    Args:
        column: its name.
        what: what is read from it.
        line, at: line and column in the source's file that name it.
        named: whether ``map``, ``unpivot`` or ``time`` names it; an attribute that ``map`` leaves out is read from the
            column of its own name, which a file may lack.
        attribute: whether an attribute is read from it, not the time, the type or the key.
        optional: whether a file may lack it.
    """

    column: str
    what: str
    line: int
    at: int
    named: bool
    attribute: bool
    optional: bool = False


@dataclass(frozen=True)
class Missing:
    """A column that a file's header lacks, and the most similar name in the header, or ``None``."""

    needed: Needed
    nearest: str | None

    @property
    def text(self) -> str:
        """The problem in words."""
        guess = f"; did the definition mean '{self.nearest}'?" if self.nearest else ""
        return f"no column '{self.needed.column}', which {self.needed.what} is read from{guess}"


def missing_columns(needed: tuple[Needed, ...], header: list[str]) -> list[Missing]:
    """Which of the ``needed`` columns a file with this header lacks.

    A column that is read only because of an attribute's name counts as missing if there is a column with nearly that
    name that nothing else reads: then one of the two names is misspelt.
    """
    read = {one.column for one in needed}
    free = [name for name in header if name not in read]
    found = []
    for one in needed:
        if one.column not in header and not one.optional:
            alike = free if one.named else [name for name in free if _one_slip(name, one.column)]
            nearest = closest(one.column, alike, 0.5 if one.named else 0.75)
            if one.named or nearest is not None:
                found.append(Missing(one, nearest))
    return found


def _one_slip(one: str, other: str) -> bool:
    """Whether one name can be the other mistyped: bid and bid_price are different, and so are bid1 and bid2."""
    letters = [re.sub(r"\d", "", squashed(name)) for name in (one, other)]
    slip = letters[0] != letters[1] or squashed(one) == squashed(other)
    return slip and abs(len(letters[0]) - len(letters[1])) <= 1


def read_unpivot(section: Section, fields: Fields[str, str]) -> tuple[tuple[tuple[str, str], ...], str | None]:
    """Read ``unpivot``: pairs of column and key, and the attribute that takes the values; ``()`` and ``None`` if
    absent.

    Raises:
        DefinitionError: it names no attribute, no columns, or a column or key twice.
    """
    if "unpivot" not in section.data:
        return (), None
    unpivot = section.section("unpivot")
    unpivot.only(("columns", "into"))
    into = unpivot.get("into", str, required=True)
    attributes = list(fields)[2:]
    if into not in attributes:
        raise unpivot.placed(WrongUnpivot.no_attribute(into, attributes), "into")
    columns = unpivot.get("columns", list, dict, required=True)
    if isinstance(columns, dict):
        inner = unpivot.section("columns")
        pairs = [(name, str(inner.get(name, str, required=True))) for name in columns]
    else:
        pairs = [(name, name) for name in unpivot.texts("columns")]
    if not pairs:
        raise unpivot.placed(WrongUnpivot.no_columns(), "columns")
    for at, what in enumerate(("column", "key")):
        seen: set[str] = set()
        for pair in pairs:
            if not pair[at].strip() or pair[at] in seen:
                raise unpivot.placed(WrongUnpivot.blank_or_twice(what, pair[at]), "columns")
            seen.add(pair[at])
    return tuple(pairs), into


def read_mappings(
    section: Section,
    fields: Fields[str, str],
    *,
    wide: tuple[tuple[str, str], ...],
    into: str | None,
    pair: tuple[str, str] | None,
) -> dict[str, Mapping]:
    """Read ``map``: where type, key and attributes come from; attributes that it omits come from the column of their
    name.

    Args:
        section: the format.
        fields: type, key and the attributes, in that order, with their types.
        wide: the columns and keys of ``unpivot``.
        into: the attribute that takes the values of ``unpivot``.
        pair: the two columns that all rows have, if the kind of the format says so.

    Raises:
        DefinitionError: a mapping gives no value, or not the one that was written.
    """
    given = section.section("map")
    for name in given.data:
        if name not in fields:
            near = closest(name, list(fields))
            raise given.placed(WrongMapping.unknown(name, near, list(fields)), name)
    key = list(fields)[1]
    if wide and key in given.data:
        raise given.placed(WrongUnpivot.key_mapped(), key)
    mapping = {name: _mapping(given, name, fields) for name in given.data}
    for name in list(fields)[1:]:
        if name in mapping or (wide and name == key):
            continue
        if pair is not None:
            if name == key:
                raise section.placed(WrongMapping.needed(name), "map")
            continue
        mapping[name] = Mapping(column=name)
    if pair is not None:
        _check_pair(section, mapping, fields, pair)
    if into is not None:
        mapping[into] = _unpivoted(mapping[into], given, into)
    return mapping


def _check_pair(section: Section, mapping: dict[str, Mapping], fields: Fields[str, str], pair: tuple[str, str]) -> None:
    """See to it that one attribute is read from the value of a pair, and nothing from a column beside the two."""
    values = [name for name in list(fields)[2:] if name in mapping and mapping[name].column == pair[1]]
    if len(values) != 1:
        raise section.placed(WrongMapping.one_value(pair[1]), "map")
    for name, rule in mapping.items():
        if rule.column is not None and rule.column not in pair:
            raise section.placed(WrongMapping.beside_pair(rule.column, section.data["kind"], pair), "map", name)


def check_unpivoted(
    section: Section, key: str, mapping: Fields[str, Mapping], times: tuple[str, ...], wide: set[str], into: str
) -> None:
    """Make sure that only the attribute ``into`` is read from the columns that ``unpivot`` takes.

    Args:
        section: the format.
        key: name of the key of events; the names of the columns become a column of this name.
        mapping: where the values of a row come from.
        times: the columns that hold the time.
        wide: the columns of ``unpivot``.
        into: the attribute that takes their cells.

    Raises:
        DefinitionError: a value or the time comes from a column that becomes rows, or from a column that these turn
            into.
    """
    read = [(f"'{name}'", rule.column, ("map", name)) for name, rule in mapping.items() if name != into]
    read += [("the time", column, ("time", "column")) for column in times]
    for what, column, place in read:
        if column in {*wide, "value", key}:
            raise section.placed(WrongUnpivot.taken(what, column, key), *place)


def _unpivoted(rule: Mapping, given: Section, into: str) -> Mapping:
    if isinstance(given.data.get(into), dict):
        origins = [origin for origin in ("column", "path", "constant") if origin in given.data[into]]
    else:
        origins = [into] if into in given.data else []
    if origins:
        raise given.placed(WrongUnpivot.two_origins(into), into)
    return Mapping("value", None, None, rule.scale, rule.offset, rule.round, rule.sentinels, rule.case)


def _mapping(section: Section, name: str, fields: Fields[str, str]) -> Mapping:
    if not isinstance(section.data[name], dict):
        return Mapping(column=_text(section, name))
    rule = section.section(name)
    rule.only(("column", "path", "constant", *_OF_NUMBERS, "case"))
    origins = [key for key in ("column", "path", "constant") if key in rule.data]
    if len(origins) > 1:
        raise rule.placed(WrongMapping.two_origins(), origins[1])
    for key in rule.data:
        if key in _OF_NUMBERS and fields[name] not in _NUMBERS:
            raise rule.placed(WrongMapping.for_numbers(key, name, fields[name]), key)
        if key == "case" and fields[name] != "string":
            raise rule.placed(WrongMapping.for_texts(name, fields[name]), key)
    scale, offset, digits = rule.get("scale", float, default=1.0), rule.get("offset", float, default=0.0), None
    if scale == 0:
        raise rule.placed(WrongMapping.no_scale(), "scale")
    if "round" in rule.data:
        digits = rule.get("round", int)
        if abs(digits) > _MOST_DIGITS:
            raise rule.placed(WrongMapping.digits(_MOST_DIGITS), "round")
    sentinels = rule.get("sentinels", list, default=[])
    return Mapping(
        column=_text(rule, "column") if "column" in rule.data else (None if origins else name),
        path=rule.get("path", str),
        constant=_constant(rule, fields[name]) if "constant" in rule.data else None,
        scale=float(scale),
        offset=float(offset),
        round=digits,
        sentinels=tuple(_sentinel(rule, at, item, fields) for at, item in enumerate(sentinels)),
        case=rule.choice("case", ("upper", "lower"), "upper") if "case" in rule.data else None,
    )


def _text(section: Section, key: str) -> str:
    text = str(section.get(key, str))
    if not text.strip() or text != text.strip():
        raise section.placed(WrongMapping.no_column(text), key)
    return text


def _constant(rule: Section, kind: str) -> str:
    text = str(rule.get("constant", str)).strip()
    if not text:
        raise rule.placed(WrongConstant.blank(), "constant")
    if kind in _NUMBERS and not (NUMBER.fullmatch(text) and math.isfinite(float(text))):
        raise rule.placed(WrongConstant.no_number(text, kind), "constant")
    if kind == "long" and not _is_long(text):
        raise rule.placed(WrongConstant.no_long(text), "constant")
    if kind == "boolean" and text.lower() not in (*TRUE, *FALSE):
        raise rule.placed(WrongConstant.no_boolean(text, TRUE + FALSE), "constant")
    return text


def _is_long(text: str) -> bool:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    return number.copy_abs() <= LARGEST_LONG and number == number.to_integral_value()


def _sentinel(rule: Section, at: int, item: Any, fields: Fields[str, str]) -> Sentinel:
    if _is_number(item):
        return Sentinel(float(item))
    if not isinstance(item, dict) or not item.keys() <= {*SENTINEL_KEYS} or not _is_number(item.get("value")):
        raise rule.placed(WrongSentinel.no_number(), "sentinels", at)
    conditions = item.get("when", {})
    if not isinstance(conditions, dict) or ("when" in item and not conditions):
        raise rule.placed(WrongSentinel.no_conditions(), "sentinels", at)
    when = []
    for name, condition in conditions.items():
        found = _COMPARISON.match(str(condition))
        if fields.get(name) not in _NUMBERS or found is None:
            raise rule.placed(WrongSentinel.condition(name, condition), "sentinels", at)
        when.append((str(name), found[1] or "=", float(found[2])))
    return Sentinel(float(item["value"]), tuple(when))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
