"""Bytes to numbered lines of UTF-8 in blocks of bounded size: BOM, transcoding, NUL bytes, over-long lines.

A line that cannot be used is taken out, with a reason and the text that could be read; the lines around it stay. No
more than ``LONGEST`` bytes of a line are ever held, so that a file with one endless line takes little memory. What
becomes of a line depends on that line alone, never on where a block ends.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from chainlake.ingest.landing.container import Content, gather
from chainlake.schemas.ops_rows import FileProblem
from chainlake.schemas.quarantine import RowProblem

T = TypeVar("T")

CHUNK = 4 << 20
#: A longer line is one quarantine row.
LONGEST = 1 << 20
#: How many characters of a bad line are kept.
KEPT = 1000

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
_BOM = codecs.BOM_UTF8
#: How many bytes of a file are read to tell its encoding.
SNIFFED = 4_096
#: In any text read here, at least one of this many characters has zero as its highest byte.
_CHARACTERS_PER_ZERO = 32


@dataclass(frozen=True)
class BadLine:
    """A line, or one entry of it, that was taken out.

    Args:
        number: 1-based number of the line; 0 for the file as a whole.
        reason: the reason code.
        text: what could be read of it.
        entry: position within the line, if it holds several rows.
        value: what is wrong, in words, if the reason code does not say it all.
    """

    number: int
    reason: RowProblem | FileProblem
    text: str
    entry: int = 0
    value: str | None = None


@dataclass(frozen=True)
class Block:
    """Good and bad lines of one section of a file.

    Args:
        lines: the good lines as UTF-8 bytes without line ends and without a byte order mark before them.
        numbers: their 1-based line numbers (int64).
        bad: the lines taken out.
    """

    lines: list[bytes]
    numbers: np.ndarray
    bad: list[BadLine]


def sniff(head: bytes, declared: str) -> tuple[str, int]:
    """``(encoding, bytes of BOM)``: a byte order mark wins over what is declared.

    Two damaged bytes can look like a mark of UTF-16, and then no line would be left. So a mark counts only if the text
    has zeros where text of two or four bytes per character has them, in digits, delimiters and line ends.
    """
    for bom, encoding in _BOMS:
        if head.startswith(bom) and _looks_like(head[len(bom) : SNIFFED], encoding):
            return encoding, len(bom)
    encoding = codecs.lookup(declared).name
    if encoding == "utf-16":
        # Without a mark, the position of NULs tells the byte order, since they are the high bytes of text.
        return ("utf-16-be" if head[:1] == b"\0" else "utf-16-le"), 0
    return ("utf-8" if encoding in ("utf-8-sig", "ascii") else encoding), 0


def _looks_like(text: bytes, encoding: str) -> bool:
    width = {"utf-16": 2, "utf-32": 4}.get(encoding[:6], 1)
    if width == 1:
        return True
    highest = text[width - 1 :: width] if encoding.endswith("le") else text[::width]
    return highest.count(0) * _CHARACTERS_PER_ZERO >= len(highest)


def blocks(stream: Content, declared: str) -> Iterator[Block]:
    """The numbered lines of ``stream``, block by block; they end at damage, and the partial line before it is left out.

    Args:
        declared: encoding to use unless a byte order mark says otherwise.
    """
    number = 1
    carry = b""
    skipping: bytes | None = None
    for chunk, end, transcoded in _utf8(stream, declared):
        data = carry + chunk
        if skipping is not None:
            cut = data.find(b"\n")
            if cut < 0 and end != "end":
                carry = b""
                continue
            bad = BadLine(number, "long_line", _text(skipping))
            number += 1
            skipping = None
            yield Block([], np.empty(0, np.int64), [bad])
            data = data[cut + 1 :] if cut >= 0 else b""
        # What follows the last line end of a damaged file is a partial line.
        cut = len(data) if end == "end" else data.rfind(b"\n") + 1
        whole, carry = data[:cut], data[cut:]
        if len(carry) > LONGEST:
            skipping, carry = carry[: 4 * KEPT], b""
        if whole:
            block, number = _split(whole, number, transcoded)
            yield block


def ahead(found: Iterator[T], worth: Callable[[T], bool]) -> Generator[T, None, None]:
    """The same items, each made in a thread while the one before it is worked on; what making them raises, this does.

    Args:
        found: the items.
        worth: whether working on an item takes long enough for a thread to be of use; if not, the next one is made when
            it is asked for.
    """
    with ThreadPoolExecutor(1) as thread:
        one = next(found, None)
        while one is not None:
            running = thread.submit(next, found, None) if worth(one) else None
            yield one
            one = next(found, None) if running is None else running.result()


def _utf8(stream: Content, declared: str) -> Iterator[tuple[bytes, str, bool]]:
    """``(UTF-8 bytes, "", "end" or "damaged", transcoded)``: transcoding turns undecodable bytes into U+FFFD."""
    decoder: codecs.IncrementalDecoder | None = None
    first = True
    while True:
        data, damaged = gather(stream, max(CHUNK, SNIFFED) if first else CHUNK)
        ending = "damaged" if damaged else "" if data else "end"
        if first:
            encoding, bom = sniff(data, declared)
            data = data[bom:]
            if encoding != "utf-8":
                decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
            first = False
        # The bytes read to tell the encoding may be more than a chunk.
        pieces = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)] or [b""]
        for number, piece in enumerate(pieces, 1):
            last = ending if number == len(pieces) else ""
            if decoder is not None:
                # A lone surrogate that the UTF-16 codec lets through is not UTF-8, so its line is taken out.
                piece = decoder.decode(piece, final=bool(last)).encode("utf-8", errors="surrogatepass")
            yield piece, last, decoder is not None
        if ending:
            return


def _split(data: bytes, number: int, transcoded: bool) -> tuple[Block, int]:
    """Whole lines as a block, and the number of the line that follows."""
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    after = number + len(lines)
    numbers = np.arange(number, after, dtype=np.int64)
    bad: dict[int, BadLine] = {}
    if len(data) > LONGEST:
        for at, line in enumerate(lines):
            if len(line) > LONGEST:
                bad[at] = BadLine(number + at, "long_line", _text(line))
    if b"\r" in data:
        # Translating line ends twice leaves more than one.
        lines = [line.rstrip(b"\r") if line.endswith(b"\r") else line for line in lines]
    if _BOM in data:
        # Concatenated files have marks in the middle.
        lines = [_without_bom(line) if line.startswith(_BOM) else line for line in lines]
    if b"\0" in data:
        for at, line in enumerate(lines):
            if b"\0" in line and at not in bad:
                bad[at] = BadLine(number + at, "nul_byte", _text(line))
    replaced = _REPLACEMENT if transcoded and _REPLACEMENT in data else None
    if replaced or not _is_utf8(data):
        for at, line in enumerate(lines):
            if at not in bad and (not _is_utf8(line) or (replaced and replaced in line)):
                bad[at] = BadLine(number + at, "bad_encoding", _text(line))
    if bad:
        keep = [at for at in range(len(lines)) if at not in bad]
        lines = [lines[at] for at in keep]
        numbers = numbers[keep]
    return Block(lines, numbers, [bad[at] for at in sorted(bad)]), after


def _without_bom(line: bytes) -> bytes:
    while line.startswith(_BOM):
        line = line[len(_BOM) :]
    return line


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _text(data: bytes) -> str:
    return data[: 4 * KEPT].decode("utf-8", errors="replace").replace("\0", "\\0")[:KEPT]
