"""Landed files of several formats, damaged at random: whatever the bytes, no other line may notice.

A file is made of lines whose rows are known from a reading of the whole file before the damage. After it:

* the parser raises nothing, and is never at a loss itself (``parser_error``);
* rows read = rows in raw + rows in quarantine, and each line that is not blank has come to one of them;
* a line that was not touched gives the same row, or the same quarantine row, under its new number;
* blocks of any size give the same.

Damage to the header, or to a compressed stream, may cost every line; then only the other laws hold.
"""

from __future__ import annotations

import gzip
import io
import random
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from chainlake.definitions.source import Source, load_source
from chainlake.ingest.landing.discovery import look_into
from chainlake.ingest.rows import lines
from chainlake.ingest.rows.parse import parse_file
from chainlake.ingest.rows.parsed import Counts, Task

_ATTRIBUTES = """\
key: ticker
type: {type}
zone: America/New_York
attributes:
  price: {{type: double, min: 0}}
  volume: {{type: long}}
  note: {{type: string}}
  ok: {{type: boolean}}
  due: {{type: timestamp}}
formats:
  - {form}
"""
#: Bytes that mean something to one reader or another.
_SIGNS = (
    b'"', b'""', b",", b";", b"\t", b"\r", b"\n", b"\r\n", b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"\xc3",
    b"\xed\xa0\x80", b"\xc2\xa0", b"\xe2\x80\xa8", b"'", b"\\", b"{", b"}", b"[", b"]", b":", b"\\ud800", b"\\u0000",
    b"1e999", b"9007199254740993", b"NaN", b"now", b"+99:99", b" ", b"-", b".", b"\x1a", b"\x0b", b"\x85",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """One way a file looks.

    Args:
        name: shown with a difference.
        form: the format's YAML.
        delimiter, quotes, decimal: of its cells; ``quotes`` is ``some`` or ``all``.
        encoding: of its text, with a byte order mark if ``bom``.
        ends: its line ends.
        head: lines before the rows.
        type: of the source.
        time: how times are written.
    """

    name: str
    form: str = "time: {column: ts, format: iso}"
    delimiter: str = ","
    quotes: str = "some"
    decimal: str = "."
    encoding: str = "utf-8"
    bom: bytes = b""
    ends: str = "\n"
    head: tuple[str, ...] = ("ts,ticker,price,volume,note,ok,due",)
    type: str = "Bar"
    time: str = "iso"

    @property
    def end(self) -> bytes:
        """The line end as bytes."""
        return self.ends.encode(self.encoding)


_EUROPE = "time: {column: ts, format: '%d.%m.%Y %H:%M:%S'}\n    delimiter: ';'\n    decimal: ','\n    thousands: '.'"
_BARE = 'columns: [ts, ticker, price, volume, note, ok, due]\n    skip_lines: 1\n    delimiter: "\\t"'
_WHEN = "[{value: 0, when: {price: '> 5'}}]"
_SENTINELS = f"map: {{price: {{sentinels: [-1, 999.9]}}, volume: {{scale: 100, sentinels: {_WHEN}}}}}"
_MAP = "{constant: S}, price: value"
KINDS = (
    Kind("quotes"),
    Kind("all in quotes", quotes="all", ends="\r\n"),
    Kind("europe", f"{_EUROPE}\n    encoding: cp1252", ";", decimal=",", encoding="cp1252",
         head=("ts;ticker;price;volume;note;ok;due",), time="europe"),
    Kind("bare", f"{_BARE}\n    time: {{column: ts, format: iso}}", "\t", bom=b"\xef\xbb\xbf", head=("made by hand",)),
    Kind("utf-16", encoding="utf-16-le", bom=b"\xff\xfe", quotes="all"),
    Kind("sentinels", f"time: {{column: ts, format: epoch_ms}}\n    {_SENTINELS}", time="ms"),
    Kind("no quotes", "quote: ''\n    short_rows: fill\n    time: {column: ts, format: iso}", quotes="none"),
    Kind("filled", "short_rows: fill\n    time: {column: ts, format: iso}"),
    Kind("types", type="{column: note, map: {plain: P, 'a, b': Q}}"),
    Kind("wide", "unpivot: {columns: {R1: a, R2: b}, into: price}\n    time: {column: ts, format: iso}",
         head=("ts,R1,R2",)),
    Kind("weekdays", "time: {column: ts, format: '%a %d%m%Y %H%M%S'}", time="weekdays"),
    Kind("days of the year", "time: {column: ts, format: '%Y-%j %H:%M:%S.%f'}", time="days"),
    Kind("json", f"kind: json_map\n    map: {{ticker: {_MAP}}}", head=()),
    Kind("json text", "kind: json_map\n    map: {ticker: {constant: S}, note: value}", head=()),
)  # fmt: skip


@dataclass(frozen=True)
class Damaged:
    """A file, and what is known of its lines.

    Args:
        data: the bytes, not compressed.
        kept: number of a line before → its number now, for lines that were not touched.
    """

    data: bytes
    kept: dict[int, int]


@lru_cache(maxsize=64)
def _source(folder: Path, kind: Kind) -> Source:
    path = folder / f"{kind.name.replace(' ', '_').replace('-', '_')}.yaml"
    path.write_text(_ATTRIBUTES.format(type=kind.type, form=kind.form), encoding="utf-8")
    return load_source(path)


def run(seed: int, folder: Path) -> str | None:
    """One file, damaged once.

    Args:
        seed: makes the file and the damage.
        folder: to write files in.

    Returns:
        What breaks a law, or ``None``.
    """
    pick = random.Random(seed)
    kind = pick.choice(KINDS)
    source = _source(folder, kind)
    texts = [*kind.head, *_rows(kind, pick)]
    whole = [text.encode(kind.encoding) for text in texts]
    suffix = pick.choice(("csv", "csv", "csv.gz", "zip"))
    longest = pick.choice((150, 1 << 20))
    before = _outcome(source, folder, _packed(_file(kind, whole), suffix), 1 << 20, longest)
    header = bool(kind.head) and pick.random() < 0.06
    damaged = _with_header(kind, whole, pick) if header else _lines(kind, whole, pick)
    packed = _packed(damaged.data, suffix)
    if suffix != "csv" and pick.random() < 0.2:
        packed, damaged = _flipped(packed, pick), Damaged(b"", {})
    where = f"{kind.name}, {suffix}, longest line {longest}"
    try:
        after = _outcome(source, folder, packed, 1 << 20, longest)
        parts = _outcome(source, folder, packed, pick.choice((40, 130, 400, 1000)), longest)
    except Exception as error:
        return f"{where}: {type(error).__name__}: {error}\n  {packed!r}"
    wrong = _broken(kind, before, after, damaged)
    if not wrong and after != parts:
        wrong = f"small blocks give\n  {_difference(after, parts)}"
    return f"{where}: {wrong}\n  {damaged.data!r}" if wrong else None


def _rows(kind: Kind, pick: random.Random) -> list[str]:
    found = []
    for n in range(pick.randrange(3, 14)):
        price = round(pick.uniform(0, 20), 2)
        if kind.name.startswith("json"):
            pairs = [f'"2024-06-03T10:{n:02d}:{k:02d}": {pick.choice((price, f"{chr(34)}{price}{chr(34)}", "null"))}'
                     for k in range(pick.randrange(1, 4))]  # fmt: skip
            found.append("{" + ", ".join(pairs) + "}")
            continue
        time = {
            "iso": f"2024-06-03 10:{n:02d}:00",
            "europe": f"03.06.2024 10:{n:02d}:00",
            "ms": str(1717423200000 + 60000 * n),
            "weekdays": f"Mon 03062024 10{n:02d}00",
            "days": f"2024-155 10:{n:02d}:00.25",
        }[kind.time]
        if kind.name == "wide":
            found.append(f"{time},{price},{pick.choice(('', price, 'x'))}")
            continue
        number = f"{price:.2f}".replace(".", kind.decimal)
        volume = str(pick.choice((pick.randrange(10**6), 2**53, "", "1.234.567" if kind.decimal == "," else 7)))
        note = pick.choice(("plain", "", "Zürich", 'a "word"', f"a{kind.delimiter} b", '6" pipe', "x"))
        key, ok = pick.choice(("IBM", "ÄÖ", "B C")), pick.choice(("yes", "0", ""))
        cells = [time, key, number, volume, note, ok, "2025-01-01"]
        found.append(kind.delimiter.join(_cell(cell, kind) for cell in cells))
    return found


def _cell(text: str, kind: Kind) -> str:
    if kind.quotes == "none":
        return text.replace(kind.delimiter, " ")
    if kind.quotes == "all" or kind.delimiter in text or text.startswith('"') or '" ' in text:
        return '"' + text.replace('"', '""') + '"'
    return text


def _file(kind: Kind, whole: list[bytes]) -> bytes:
    return kind.bom + kind.end.join(whole) + kind.end


def _lines(kind: Kind, whole: list[bytes], pick: random.Random) -> Damaged:
    """Damage to some rows."""
    rows: list[tuple[int | None, bytes]] = [(at + 1, line) for at, line in enumerate(whole)]
    first = len(kind.head)
    for _ in range(pick.choice((1, 1, 1, 2, 4))):
        at = pick.randrange(first, len(rows)) if len(rows) > first else first
        how = pick.randrange(10)
        if how < 5 and at < len(rows):
            rows[at] = (None, _spoilt(kind, rows[at][1], rows, pick))
        elif how == 5 and at < len(rows):
            rows[at + 1 : at + 1] = [(None, rows[at][1])] * pick.randrange(1, 3)
        elif how == 6 and at < len(rows):
            del rows[at]
        elif how == 7:
            rows.insert(at, (None, pick.choice((b"", " ".encode(kind.encoding), whole[0], _noise(kind, pick)))))
        elif how == 8 and at + 1 < len(rows):
            # A line end that is another one.
            rows[at : at + 2] = [(None, rows[at][1] + "\r".encode(kind.encoding) + rows[at + 1][1])]
        else:
            tail = rows[first:]
            pick.shuffle(tail)
            rows[first:] = tail
    data = kind.bom
    kept: dict[int, int] = {}
    number = 1
    for at, (origin, line) in enumerate(rows):
        if origin is not None:
            kept[origin] = number
        last = at == len(rows) - 1 and pick.random() < 0.3
        part = line + (b"" if last else kind.end)
        number += _line_ends(part, kind.encoding)
        data += part
    return Damaged(data, kept)


def _with_header(kind: Kind, whole: list[bytes], pick: random.Random) -> Damaged:
    at = pick.randrange(len(kind.head))
    spoilt = list(whole)
    spoilt[at] = _spoilt(kind, whole[at], [(None, line) for line in whole], pick)
    return Damaged(_file(kind, spoilt), {})


def _spoilt(kind: Kind, line: bytes, rows: list[tuple[int | None, bytes]], pick: random.Random) -> bytes:
    # Of two-byte text whole units are damaged: half a one more moves every line after it.
    unit = 2 if kind.encoding.startswith("utf-16") else 1
    units = [line[at : at + unit] for at in range(0, len(line), unit)]
    for _ in range(pick.choice((1, 1, 2, 5))):
        at = pick.randrange(len(units) + 1)
        how = pick.randrange(8)
        if how == 0 and at < len(units):
            units[at] = bytes([*units[at][:-1], units[at][-1] ^ (1 << pick.randrange(8))])
        elif how == 1:
            del units[at : at + pick.randrange(1, 6)]
        elif how in (2, 3, 4):
            half = unit == 2 and pick.random() < 0.2
            units[at:at] = [b"\x00\xd8"] if half else [bytes([value, 0][:unit]) for value in pick.choice(_SIGNS)]
        elif how == 5 and len(units) > 1:
            other = pick.randrange(len(units))
            at = min(at, len(units) - 1)
            units[at], units[other] = units[other], units[at]
        elif how == 6:
            other_line = pick.choice(rows)[1]
            units[at:] = [other_line[n : n + unit] for n in range(0, len(other_line), unit)][at:]
        else:
            text = b"".join(units).decode(kind.encoding, errors="replace")
            wrong = text.encode("cp1252" if unit == 1 and kind.encoding == "utf-8" else kind.encoding, errors="replace")
            units = [wrong[n : n + unit] for n in range(0, len(wrong), unit)]
    return b"".join(units)


def _noise(kind: Kind, pick: random.Random) -> bytes:
    size = pick.choice((3, 40, 200))
    noise = bytes(pick.randrange(256) for _ in range(size))
    return noise if not kind.encoding.startswith("utf-16") else noise[: size // 2 * 2]


def _line_ends(data: bytes, encoding: str) -> int:
    if not encoding.startswith("utf-16"):
        return data.count(b"\n")
    return sum(data[at : at + 2] == b"\n\0" for at in range(0, len(data), 2))


def _packed(data: bytes, suffix: str) -> tuple[str, bytes]:
    if suffix == "csv":
        return "a.csv", data
    if suffix == "csv.gz":
        return "a.csv.gz", gzip.compress(data, mtime=0)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writer:
        writer.writestr("in/a.csv", data)
    return "a.zip", archive.getvalue()


def _flipped(packed: tuple[str, bytes], pick: random.Random) -> tuple[str, bytes]:
    name, data = packed
    spoilt = bytearray(data)
    for _ in range(pick.choice((1, 2, 8))):
        spoilt[pick.randrange(len(spoilt))] = pick.randrange(256)
    return name, bytes(spoilt[: pick.choice((len(spoilt), pick.randrange(len(spoilt)) + 1))])


@dataclass(frozen=True)
class Outcome:
    """What came of a file: per line its rows and quarantine rows, and the counts of each of its contents."""

    lines: dict[int, list[tuple[Any, ...]]]
    counts: list[Counts]


def _outcome(source: Source, folder: Path, packed: tuple[str, bytes], chunk: int, longest: int) -> Outcome:
    name, data = packed
    file = folder / name
    file.write_bytes(data)
    found: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    counts = []
    with _limits(chunk, longest):
        for landed in look_into(source, file, name):
            for piece in parse_file(source, Task.of(landed, "load")):
                if isinstance(piece, Counts):
                    counts.append(piece)
                    continue
                for row in piece.batch.to_pylist():
                    # A damaged archive has several contents, and each its own line 1.
                    file_id, line = row.pop("file_id"), row.pop("line")
                    del row["load_id"]
                    if row.get("reason") == "long_line":
                        # Of a line that no memory holds, as much is kept as was read at once.
                        del row["raw"]
                    kind = type(piece).__name__
                    found[line].append((kind, landed.path, file_id if line == 0 else "", *row.items()))
    return Outcome({line: sorted(rows, key=repr) for line, rows in sorted(found.items())}, counts)


@contextmanager
def _limits(chunk: int, longest: int) -> Iterator[None]:
    before = lines.CHUNK, lines.LONGEST
    lines.CHUNK, lines.LONGEST = chunk, longest
    try:
        yield
    finally:
        lines.CHUNK, lines.LONGEST = before


def _broken(kind: Kind, before: Outcome, after: Outcome, damaged: Damaged) -> str:
    """The law that is broken, empty if none is."""
    rows = {line: found for line, found in after.lines.items() if line}
    reasons = [dict(item[3:]).get("reason") for found in after.lines.values() for item in found]
    if "parser_error" in reasons:
        return f"the parser is at a loss: {after.lines}"
    for counts in after.counts:
        if counts.rows_read != counts.rows_raw + counts.rows_quarantined:
            return f"rows do not add up: {counts}"
    told = sum(counts.rows_read for counts in after.counts)
    if told != sum(map(len, rows.values())):
        return f"{told} rows are counted, {sum(map(len, rows.values()))} given"
    for line, found in rows.items():
        if len({(item[1], dict(item[3:])["entry"]) for item in found}) < len(found):
            return f"line {line} comes twice: {found}"
    for was, now in damaged.kept.items():
        if was > len(kind.head) and before.lines.get(was) != after.lines.get(now):
            return f"line {was}, now {now}, was\n  {before.lines.get(was)} and is\n  {after.lines.get(now)}"
    return _left_out(kind, rows, damaged)


def _left_out(kind: Kind, rows: dict[int, Any], damaged: Damaged) -> str:
    """A line of cells without any outcome, or one beyond the end of the file."""
    text = damaged.data.decode(kind.encoding, errors="replace")
    written = text.removeprefix("\ufeff").split("\n")
    if damaged.kept and kind.name != "wide" and not kind.name.startswith("json"):
        for number, line in enumerate(written, 1):
            blank = not line.rstrip("\r").lstrip("\ufeff").encode().strip()
            if number > len(kind.head) and (number in rows) == blank:
                return f"line {number} {'is blank and counts' if blank else 'is lost'}: {line!r}"
    if damaged.data and max(rows, default=0) > len(written):
        return f"line {max(rows)} of {len(written)}"
    return ""


def _difference(one: Outcome, other: Outcome) -> str:
    for line in sorted(one.lines.keys() | other.lines.keys()):
        if one.lines.get(line) != other.lines.get(line):
            return f"line {line}: {other.lines.get(line)}\n  for {one.lines.get(line)}"
    return f"{other.counts}\n  for {one.counts}"
