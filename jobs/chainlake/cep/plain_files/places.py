"""Where something is in a file of events, which is read again row by row once an error is found."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from chainlake.cep.plain_files.errors import Place, UnfitFile, UnfitLine

JSON = (".jsonl", ".ndjson", ".json")
TEXT = (".csv", ".tsv", ".txt")


def suffix_of(file: Path) -> str:
    """The suffix that says what the file holds, without ``.gz``."""
    return Path(file.stem).suffix if file.suffix == ".gz" else file.suffix


def delimiter_of(file: Path) -> str:
    """Tab for ``.tsv``, else a comma."""
    return "\t" if suffix_of(file) == ".tsv" else ","


def rows(file: Path) -> Iterator[tuple[int, list[str]]]:
    """The line (1-based) and cells of each row of a delimited file, the header first; blank lines are skipped."""
    with opened(file) as stream:
        text = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
        reader = csv.reader(text, delimiter=delimiter_of(file))
        line = 1
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1


def row_place(file: Path, row: int) -> Place:
    """Where the 1-based event ``row`` of a file is: its line, or the row if the file has none."""
    suffix = suffix_of(file)
    if suffix in TEXT:
        try:
            return Place(file, next((line for at, (line, _) in enumerate(rows(file)) if at == row), None))
        except csv.Error:  # a cell is larger than this reader accepts
            return Place(f"{file}, row {row}")
    if suffix not in JSON:
        return Place(f"{file}, row {row}")
    with opened(file) as stream:
        filled = (line for line, text in enumerate(stream, 1) if text.strip())
        return Place(file, next(islice(filled, row - 1, None), None))


def text_of(file: Path) -> bytes:
    """The bytes of a text file, without byte order marks at the start of lines.

    Raises:
        InputError: with the line, if it is not UTF-8 text or holds a NUL.
    """
    with opened(file) as stream:
        data = stream.read()
    while (plain := data.removeprefix(codecs.BOM_UTF8).replace(b"\n" + codecs.BOM_UTF8, b"\n")) != data:
        # Concatenated files have byte order marks in the middle.
        data = plain
    at = data.find(b"\0")
    try:
        str(data, "utf-8")
    except UnicodeDecodeError as error:
        at = error.start if at < 0 else min(at, error.start)
    if at >= 0:
        raise UnfitLine.no_text(file, data.count(b"\n", 0, at) + 1)
    return data


def csv_error(file: Path) -> UnfitFile | UnfitLine:
    """Why a delimited file of UTF-8 text could not be read: the first line with a wrong number of cells."""
    try:
        table = rows(file)
        header = next(table, (1, []))[1]
        for line, cells in table:
            if len(cells) != len(header):
                separated = "tabs" if delimiter_of(file) == "\t" else "commas"
                return UnfitLine.cells(file, line, len(cells), len(header), separated)
    except csv.Error as error:
        return UnfitFile.no_rows(file, error)
    return UnfitFile.no_rows(file)


def opened(file: Path) -> BinaryIO:
    """A file, unpacked if it ends in ``.gz``, opened for reading."""
    return cast(BinaryIO, gzip.open(file)) if file.suffix == ".gz" else file.open("rb")
