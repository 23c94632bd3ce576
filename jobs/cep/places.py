"""Where in a file of events something stands: read again row by row, once it is known that something is wrong."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from jobs.errors import InputError

NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*\Z")
JSON = (".jsonl", ".ndjson", ".json")
TEXT = (".csv", ".tsv", ".txt")

_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "a text", dict: "an object", list: "a list"}
_SHOWN = 40


def suffix_of(file: Path) -> str:
    """What the name says that the file holds, ``.gz`` left aside."""
    return Path(file.stem).suffix if file.suffix == ".gz" else file.suffix


def delimiter_of(file: Path) -> str:
    """Tab for ``.tsv``, else a comma."""
    return "\t" if suffix_of(file) == ".tsv" else ","


def shown(text: str) -> str:
    """A text from a file, which may be anything, fit for a message."""
    cut = text[:_SHOWN] + ("…" if len(text) > _SHOWN else "")
    return "".join(letter if letter.isprintable() else "?" for letter in cut)


def rows(file: Path) -> Iterator[tuple[int, list[str]]]:
    """The line (1-based) and cells of each row of a delimited file, the header first; blank lines are passed over."""
    with _open(file) as stream:
        text = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
        reader = csv.reader(text, delimiter=delimiter_of(file))
        line = 1
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1


def row_place(file: Path, row: int) -> dict[str, Any]:
    """Keyword arguments that name the 1-based event ``row`` of a file: its line, or the row if it has none."""
    suffix = suffix_of(file)
    if suffix in TEXT:
        return {"file": file, "line": next((line for at, (line, _) in enumerate(rows(file)) if at == row), None)}
    return {"file": file, "line": row} if suffix in JSON else {"file": f"{file}, row {row}"}


def cell_error(file: Path, column: str, wrong: Callable[[str], bool], what: str) -> InputError | None:
    """An error at the first cell of a delimited file for which ``wrong`` holds, if any; blank ones are passed over."""
    if suffix_of(file) not in TEXT:
        return None
    table = rows(file)
    header = next(table, (1, []))[1]
    if column not in header:
        return None
    at = header.index(column)
    for line, cells in table:
        if at < len(cells) and cells[at].strip() and wrong(cells[at]):
            return InputError(f"'{shown(cells[at])}' {what}", file=file, line=line, key=column)
    return None


def csv_error(file: Path) -> InputError:
    """Why a delimited file could not be read: its first line that is no row."""
    with _open(file) as stream:
        for number, text in enumerate(stream, 1):
            if not _is_text(text):
                return _no_text(file, number)
    try:
        table = rows(file)
        header = next(table, (1, []))[1]
        for line, cells in table:
            if len(cells) != len(header):
                return InputError(
                    f"this row has another number of cells ({len(cells)}) than the header ({len(header)})",
                    file=file,
                    line=line,
                    hint=f"Cells are separated by {'tabs' if delimiter_of(file) == chr(9) else 'commas'}.",
                )
    except csv.Error as error:
        return InputError(f"the file is not delimited text: {error}", file=file)
    return InputError("the file is not delimited text", file=file)


def json_error(file: Path) -> InputError:
    """Why a file of JSON lines could not be read: its first line that is no object, or where a value's kind changes."""
    kinds: dict[str, str] = {}
    with _open(file) as stream:
        for number, line in enumerate(stream, 1):
            if not _is_text(line):
                return _no_text(file, number)
            if line.strip() and (wrong := _wrong_json(line, kinds)):
                what, name = wrong
                return InputError(what, file=file, line=number, key=name, hint=None if name else _LINES)
    return InputError("the file is not JSON lines", file=file, hint=_LINES)


def _wrong_json(line: bytes, kinds: dict[str, str]) -> tuple[str, str | None] | None:
    """What is wrong with a line, and the attribute; ``kinds`` are those of the lines before."""
    try:
        value = json.loads(line)
    except ValueError as error:
        return f"this line is no JSON: {str(error).split(':')[0]}", None
    if not isinstance(value, dict):
        return f"this line holds {_kind(value)}, no object", None
    attributes = value["attrs"].items() if isinstance(value.get("attrs"), dict) else ()
    for name, item in (*value.items(), *attributes):
        if item is not None and kinds.setdefault(name, _kind(item)) != _kind(item):
            return f"{name} is {_kind(item)} here, and {kinds[name]} before", name
    return None


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "nothing")


_LINES = 'Each line is one object, such as {"id": 1, "type": "A", "ts": 0}.'


def _open(file: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(file)) if file.suffix == ".gz" else file.open("rb")


def _is_text(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in line


def _no_text(file: Path, line: int) -> InputError:
    hint = "Save the file as UTF-8; with --source NAME the source says the encoding."
    return InputError("this line is not UTF-8 text", file=file, line=line, hint=hint)
