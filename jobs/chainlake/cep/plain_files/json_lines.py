"""Reads JSON lines as a table: numbers as they are written, strings as they are, one kind of value for each
attribute.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from chainlake.cep.plain_files.errors import INEXACT, CellProblem, Place, UnfitCell, UnfitLine
from chainlake.cep.plain_files.places import opened
from chainlake.cep.values.arrow import text_array
from chainlake.cep.values.texts import is_unicode

_KINDS = {bool: "true or false", str: "text", dict: "an object", list: "a list"}
#: Whole numbers up to this size are exact as doubles.
_WHOLE = 2**53
#: How many lines are put into arrays together.
_BLOCK = 1 << 16


class _Number(str):
    """A number as it is written in the file."""

    __slots__ = ()


@dataclass
class _Attribute:
    """The values of one attribute so far: those of whole blocks as arrays, the others as they were read."""

    kind: str
    blocks: list[pa.Array] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)


def read_json_lines(file: Path) -> tuple[pa.Table, frozenset[str]]:
    """The objects of a file, one per line, with the entries of ``attrs`` as columns; and which columns are numbers.

    Numbers are strings, as written. Null and NaN are missing values. A list of numbers is a list; other lists and
    objects become empty structs, which no pattern can use.

    Raises:
        InputError: with the line: text that is not UTF-8, a line that is not an object, a key that occurs twice, an
            attribute of two kinds, a number in a list that cannot be kept exactly.
    """
    found: dict[str, _Attribute] = {}
    lines: list[int] = []
    total = 0
    for line, value in _objects(file):
        for name, item in value.items():
            attribute = found.setdefault(name, _Attribute("nothing"))
            if item is None:
                continue
            kind = _kind(item)
            if attribute.kind == "nothing":
                attribute.kind, attribute.blocks = kind, [pa.nulls(total, _TYPES[kind])]
            elif attribute.kind != kind:
                raise UnfitLine.two_kinds(file, line, name, (kind, attribute.kind))
            attribute.values += [None] * (len(lines) - len(attribute.values))
            attribute.values.append(item)
        lines.append(line)
        if len(lines) == _BLOCK:
            _close(file, found, lines)
            total += len(lines)
            lines = []
    _close(file, found, lines)
    rows = total + len(lines)
    columns = {
        name: pa.nulls(rows) if one.kind == "nothing" else pa.chunked_array(one.blocks, _TYPES[one.kind])
        for name, one in found.items()
    }
    numbers = frozenset(name for name, one in found.items() if one.kind == "a number")
    return pa.table(columns), numbers


_TYPES = {
    "nothing": pa.null(),
    "a number": pa.string(),
    "text": pa.string(),
    "true or false": pa.bool_(),
    "a list": pa.list_(pa.float64()),
    "an object": pa.struct([]),
    "a list of things other than numbers": pa.struct([]),
}


def _kind(item: Any) -> str:
    if isinstance(item, _Number):
        return "a number"
    if isinstance(item, list) and not all(isinstance(one, _Number) or one is None for one in item):
        return "a list of things other than numbers"
    return _KINDS[type(item)]


def _close(file: Path, found: dict[str, _Attribute], lines: list[int]) -> None:
    """Put the values of the lines since the last call into arrays."""
    for name, attribute in found.items():
        values = attribute.values + [None] * (len(lines) - len(attribute.values))
        attribute.values = []
        try:
            attribute.blocks.append(_array(attribute.kind, values))
        except UnicodeEncodeError:
            wrong = next(row for row, one in enumerate(values) if one is not None and not is_unicode(one))
            raise UnfitLine.half_character(file, lines[wrong], name) from None
        except _Inexact as error:
            raise UnfitCell.of(CellProblem(error.text, INEXACT, Place(file, lines[error.row]), name)) from None


def _array(kind: str, values: list[Any]) -> pa.Array:
    if kind in ("a number", "text"):
        return text_array(values)
    known = pa.py_buffer(np.packbits([one is not None for one in values], bitorder="little"))
    if kind == "true or false":
        bits = pa.py_buffer(np.packbits([one is True for one in values], bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), len(values), [known, bits])
    if kind != "a list":
        return pa.Array.from_buffers(_TYPES[kind], len(values), [known])
    flat = np.array([np.nan if x is None else float(x) for one in values for x in one or ()], np.float64)
    if np.any(np.abs(flat) >= _WHOLE):
        _check_exact(values)
    offsets = np.zeros(len(values) + 1, np.int32)
    offsets[1:] = np.cumsum([len(one or ()) for one in values])
    inner = pa.Array.from_buffers(pa.float64(), len(flat), [None, pa.py_buffer(flat)])
    return pa.Array.from_buffers(pa.list_(pa.float64()), len(values), [known, pa.py_buffer(offsets)], children=[inner])


class _Inexact(Exception):
    """The list ``row`` has a number that no double can represent."""

    def __init__(self, row: int, text: str) -> None:
        self.row, self.text = row, text


def _check_exact(values: list[Any]) -> None:
    for row, one in enumerate(values):
        for text in (str(x) for x in one or () if x is not None):
            # As for single numbers: whole ones are exact, and none is infinite.
            if not abs(float(text)) < np.inf or (text.lstrip("-").isdigit() and abs(int(text)) > _WHOLE):
                raise _Inexact(row, text)


def _objects(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line and object of each line that is not blank, with the entries of ``attrs`` beside the others."""
    with opened(file) as stream:
        for line, raw in enumerate(stream, 1):
            try:
                # Concatenated files have byte order marks in the middle.
                text = raw.decode("utf-8-sig")
            except UnicodeDecodeError:
                raise UnfitLine.no_text(file, line) from None
            if not text.strip():
                continue
            try:
                value = _DECODER.decode(text)
            except _Twice as error:
                raise UnfitLine.twice(file, line, error.name) from None
            except RecursionError:
                raise UnfitLine.too_deep(file, line) from None
            except ValueError as error:
                raise UnfitLine.no_json(file, line, error) from None
            if not isinstance(value, dict):
                raise UnfitLine.no_object(file, line, "nothing" if value is None else _kind(value))
            attrs = value.get("attrs")
            if isinstance(attrs, dict):
                del value["attrs"]
                twice = next((name for name in attrs if name in value), None)
                if twice is not None:
                    raise UnfitLine.twice_in_attrs(file, line, twice)
                value |= attrs
            if not all(map(is_unicode, value)):
                raise UnfitLine.half_character(file, line, None)
            yield line, value


class _Twice(Exception):
    """A key occurs twice in an object."""

    def __init__(self, name: str) -> None:
        self.name = name


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for name in found if names.count(name) > 1))
    return found


def _constant(name: str) -> None:
    """NaN is a missing value, as everywhere; an infinity is not a value of JSON."""
    if name != "NaN":
        raise ValueError(f"{name} is not a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_Number, parse_float=_Number, parse_constant=_constant)
