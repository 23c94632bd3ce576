"""Text from data, made safe to display: on a terminal, in a page, in a log.

Names of files, keys, raw rows and error messages can hold anything, also characters that a terminal obeys (escape
sequences that colour, overwrite, set the title or the clipboard) or that change the order of the text beside them.
Such characters are shown as Python writes them, ``\\x1b`` or ``\\u202e``. Numbers of people's tables lack the noise of
rounding. Data formats (CSV, JSON) stay exact.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, TextIO, cast

#: Controls but line end and tab, marks and overrides of direction, invisible spaces and tags, halves of pairs.
_HIDDEN = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
_HIDDEN += "\ud800-\udfff\U000e0000-\U000e007f"
_IN_TEXT = re.compile(f"[{_HIDDEN}]")
_IN_LINE = re.compile(f"[\t\n{_HIDDEN}]")

#: How many digits of a double are certain: a number that is written with no more of them is kept as it is.
_CERTAIN = 15
#: Noise is at least five 0s or 9s behind the last digit that means something, and this small beside the whole number.
_BESIDE_DIGIT, _BESIDE_NUMBER = 1e-5, 1e-9


def visible(text: str) -> str:
    """``text`` without characters that do more than represent themselves; line ends and tabs stay."""
    return _IN_TEXT.sub(_named, text)


def one_line(text: str) -> str:
    """As :func:`visible`, with line ends and tabs shown too: a name or a cell cannot begin its own line."""
    return _IN_LINE.sub(_named, text)


def storable(name: str) -> str:
    """A file's ``name`` with the bytes that are no UTF-8 as ``\\xNN``: tables, JSON and terminals take no others."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


def _named(found: re.Match[str]) -> str:
    code = ord(found[0])
    short = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}.get(code)
    return short or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def json_visible(text: str) -> str:
    """JSON that says the same and is safe to look at: what is hidden is written as ``\\uXXXX`` in its strings."""
    return _IN_TEXT.sub(lambda found: json.dumps(found[0])[1:-1] if found[0] != "\x7f" else "\\u007f", text)


def in_encoding(text: str, encoding: str) -> str:
    """``text`` with the characters that ``encoding`` lacks written as JSON writes them in strings."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(sign if _has(encoding, sign) else json.dumps(sign)[1:-1] for sign in text)
    return text


def _has(encoding: str, sign: str) -> bool:
    try:
        sign.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def without_noise(value: Any) -> Any:
    """A value for people: a number without the noise of rounding, 7.6 for 93.4 - 85.8, which is 7.599999999999994.

    Args:
        value: of any type; numbers inside lists and mappings count too. What is no double is returned as it is.
    """
    if isinstance(value, dict):
        return {key: without_noise(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_noise(item) for item in value]
    if not isinstance(value, float) or not math.isfinite(value) or float(f"{value:.{_CERTAIN}g}") == value:
        return value
    for digits in range(1, _CERTAIN):
        short = float(f"{value:.{digits}g}")
        step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
        if abs(value - short) <= min(_BESIDE_DIGIT * step, _BESIDE_NUMBER * abs(value)):
            return short
    return value


def rounded(value: float, digits: int = 6, thousands: str = "") -> str:
    """A number in so many significant digits, and in any case with all those before the point: 1669875.

    Args:
        value: the number.
        digits: how many.
        thousands: what stands between groups of three digits, a comma or nothing.
    """
    if not math.isfinite(value) or value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits}g}"
    before = math.floor(math.log10(abs(value))) + 1 if value else 1
    text = f"{value:{thousands}.{max(0, digits - before)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def widths_of(rows: Iterable[Sequence[str]]) -> list[int]:
    """The width of each column of a table, of rows that are equally long."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def table_line(texts: Sequence[str], widths: Sequence[int], right: Container[int] = ()) -> str:
    """A row of a table: columns two blanks apart, those numbered in ``right`` aligned there; no blanks at the end."""
    cells = (
        text.rjust(width) if number in right else text.ljust(width)
        for number, (text, width) in enumerate(zip(texts, widths, strict=True))
    )
    return "  ".join(cells).rstrip()


def table_lines(header: Sequence[str], rows: Iterable[Sequence[Any]], right: Container[int] = ()) -> list[str]:
    """A table as lines: the header and all rows, each cell on one line.

    Args:
        header: names of the columns.
        rows: cells of any type, shown as their text, numbers without noise.
        right: numbers of the columns, from 0, that are aligned to the right.
    """
    cells = [[one_line(str(without_noise(cell))) for cell in row] for row in (header, *rows)]
    widths = widths_of(cells)
    return [table_line(row, widths, right) for row in cells]


class Shown:
    """A stream for people: what is written to it is :func:`visible`, and in the stream's encoding; all else is its own.

    Args:
        stream: where it goes.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write ``text``; returns its length."""
        self.stream.write(in_encoding(visible(text), self.stream.encoding or "utf-8"))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def for_people() -> Iterator[None]:
    """Both output streams of this process made safe to look at, as every program of the project begins."""
    out, err = (cast(TextIO, Shown(for_commands(stream))) for stream in (sys.stdout, sys.stderr))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield


def for_programs(stream: TextIO) -> TextIO:
    """Where data goes that must stay exact: the stream itself, unless it is a terminal, where someone looks at it."""
    return stream if stream.isatty() else for_commands(stream)


def for_commands(stream: TextIO) -> TextIO:
    """The stream itself, for the few control characters that are our own."""
    return stream.stream if isinstance(stream, Shown) else stream
