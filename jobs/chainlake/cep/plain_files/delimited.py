"""Reads delimited text as a table of strings: each cell as it is written, each row on its own line."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from chainlake.cep.plain_files.errors import UnfitColumn, UnfitLine
from chainlake.cep.plain_files.places import csv_error, delimiter_of, text_of
from chainlake.cep.values.arrow import NO_TEXT

#: The longest line in bytes: Arrow reads a file in blocks of this size, and a row must fit into one.
_BLOCK = 1 << 24


def read_delimited(file: Path) -> pa.Table:
    """The rows of a delimited file with a header; a cell that is empty or all blanks is null.

    Raises:
        InputError: with the line: text that is not UTF-8, a NUL, a carriage return inside a line, unbalanced quotes,
            a row that does not have as many cells as the header; or two columns have one name.
    """
    data = text_of(file)
    _check_lines(file, data)
    try:
        lines = csv.reader(io.TextIOWrapper(io.BytesIO(data), "utf-8", newline=""), delimiter=delimiter_of(file))
        header = next((cells for cells in lines if cells), [])
    except csv.Error:
        # A name is longer than this reader accepts.
        raise csv_error(file) from None
    twice = [name for name in dict.fromkeys(header) if header.count(name) > 1]
    if twice:
        raise UnfitColumn.duplicate(file, twice[0], line=1)
    form = pyarrow.csv.ParseOptions(delimiter=delimiter_of(file))
    kinds = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False)
    blocks = pyarrow.csv.ReadOptions(block_size=_BLOCK)
    try:
        table = pyarrow.csv.read_csv(io.BytesIO(data), blocks, form, kinds)
    except pa.ArrowInvalid:
        raise csv_error(file) from None
    for index, name in enumerate(table.column_names):
        column = table.column(index)
        table = table.set_column(index, name, pc.if_else(pc.match_substring_regex(column, r"\S"), column, NO_TEXT))
    return table


def _check_lines(file: Path, data: bytes) -> None:
    """Refuse lines that different readers would split differently into rows and cells."""
    ending = b"\n"
    if data.count(b"\r") > data.count(b"\r\n"):
        if b"\n" in data:
            at = re.search(rb"\r(?!\n)", data)
            assert at is not None, "there are carriage returns that no line feed follows"
            raise UnfitLine.carriage_return(file, data.count(b"\n", 0, at.start()) + 1)
        ending = b"\r"
    if b'"' not in data:
        return
    other = b'[^"' + delimiter_of(file).encode() + rb"\r\n]"
    cell = rb'(?:"(?:[^"]|"")*"|' + other + other.replace(b'"', b"") + rb"*|)"
    fits = re.compile(cell + rb"(?:" + delimiter_of(file).encode() + cell + rb")*\r?\Z")
    for number, line in enumerate(data.split(ending), 1):
        if b'"' in line and not fits.match(line):
            raise UnfitLine.open_quote(file, number)
