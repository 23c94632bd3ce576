"""Text from data, made harmless for whoever looks at it: on a terminal, in a page, in a log.

Names of files, keys, raw rows and error messages can hold anything, also characters that a terminal obeys (escape
sequences that colour, overwrite, set the title or the clipboard) or that change the order of what stands beside them.
Such characters are shown as Python writes them, ``\\x1b`` or ``\\u202e``. Data formats (CSV, JSON) stay exact.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO

#: Controls but line end and tab, marks and overrides of direction, invisible spaces and tags, halves of pairs.
_HIDDEN = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
_HIDDEN += "\ud800-\udfff\U000e0000-\U000e007f"
_IN_TEXT = re.compile(f"[{_HIDDEN}]")
_IN_LINE = re.compile(f"[\t\n{_HIDDEN}]")


def visible(text: str) -> str:
    """``text`` without a character that does more than to stand for itself; line ends and tabs stay."""
    return _IN_TEXT.sub(_named, text)


def one_line(text: str) -> str:
    """As :func:`visible`, with line ends and tabs shown too: a name or a cell cannot begin a line of its own."""
    return _IN_LINE.sub(_named, text)


def _named(found: re.Match[str]) -> str:
    code = ord(found[0])
    short = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}.get(code)
    return short or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def json_text(value: Any, **options: Any) -> str:
    """``json.dumps`` that is as exact, readable in any script, and safe to look at: what is hidden is ``\\uXXXX``."""
    return _IN_TEXT.sub(_json_named, json.dumps(value, ensure_ascii=False, **options))


def _json_named(found: re.Match[str]) -> str:
    # A line end between the parts of the text is not matched; within strings JSON has escaped it already.
    return json.dumps(found[0])[1:-1]


class Shown(io.TextIOBase):
    """A stream for people: everything that is written to it is :func:`visible`.

    Args:
        stream: where it goes.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write ``text``; returns its length."""
        self.stream.write(visible(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream below."""
        self.stream.flush()

    def fileno(self) -> int:
        """The descriptor of the stream below."""
        return self.stream.fileno()

    def isatty(self) -> bool:
        """Whether somebody looks at it."""
        return self.stream.isatty()

    def close(self) -> None:
        """Close the stream below."""
        self.stream.close()

    @property
    def closed(self) -> bool:
        """Whether the stream below is closed."""
        return self.stream.closed

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream below."""
        return self.stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """How the stream below meets what its encoding lacks."""
        return self.stream.errors


@contextlib.contextmanager
def for_people() -> Iterator[None]:
    """Both output streams of this process made safe to look at, as every program of the project begins."""
    out, err = (Shown(_plain(stream)) for stream in (sys.stdout, sys.stderr))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield


def for_programs(stream: TextIO) -> TextIO:
    """Where data goes that must stay exact: the stream itself, unless it is a terminal, where somebody looks at it."""
    return stream if stream.isatty() else _plain(stream)


def commands_to(stream: TextIO) -> TextIO:
    """The stream itself, for the few control characters that are our own."""
    return _plain(stream)


def _plain(stream: TextIO) -> TextIO:
    return stream.stream if isinstance(stream, Shown) else stream
