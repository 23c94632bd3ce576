"""Files of all kinds to rows and quarantine rows, without Spark."""

from __future__ import annotations

import dataclasses
import gzip
import io
import os
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from chainlake.definitions.source import load_source
from chainlake.ingest.landing.discovery import discover
from chainlake.ingest.rows import lines
from chainlake.ingest.rows.parse import read_file
from chainlake.ingest.rows.parsed import Task
from chainlake.paths import Home

MESSY = Path(__file__).parents[1] / "cases" / "messy"
BARS = """\
key: ticker
type: Bar
zone: Europe/Berlin
attributes:
  price: {type: double, min: 0}
  volume: {type: long}
  note: {type: string}
formats:
  - time: {column: ts, format: iso}
"""


class Parsed:
    """All that came of the files of a landing folder."""

    def __init__(self, tmp_path: Path, yaml: str, **files: bytes | str) -> None:
        config = tmp_path / "x.yaml"
        config.write_text(yaml)
        self.source = load_source(config)
        self.home = Home(tmp_path, str(tmp_path / "lake"), tmp_path, tmp_path)
        folder = self.home.landing("x")
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        self.landing = discover(self.home, self.source, datetime.now(UTC))
        self.rows: list[dict] = []
        self.bad: list[tuple] = []
        self.counts: dict[str, dict] = {}
        for path, f in sorted(self.landing.files.items()):
            task = Task.of(f, path)
            whole = read_file(self.source, task)
            self.rows += whole.rows.to_pylist()
            names = ("line", "reason", "field", "value", "raw")
            self.bad += [tuple(row[name] for name in names) for row in whole.bad.to_pylist()]
            self.counts[path] = counts = dataclasses.asdict(whole.counts)
            assert counts["rows_read"] == counts["rows_raw"] + counts["rows_quarantined"]

    def values(self, *names: str) -> list[tuple]:
        return [tuple(row[name] for name in names) for row in self.rows]

    def times(self) -> list[str]:
        return [row["ts"].strftime("%d %H:%M:%S") for row in self.rows]


def parsed(tmp_path, content, yaml=BARS, name="a.csv"):
    return Parsed(tmp_path, yaml, **{name: content})


def test_dirty_rows_are_set_aside_with_reason_and_line_and_good_ones_stay(tmp_path):
    long = "x" * (lines.LONGEST + 1)
    text = (
        "ts,ticker,price,volume,note\n"
        "2025-01-01 10:00:00,A,1.5,10,fine\n"
        "2025-01-01 10:01:00,A,abc,10,\n"
        "2025-01-01 10:02:00,A,1.5\n"
        "\n"
        "yesterday,A,1.5,10,\n"
        "2025-01-01 10:04:00,,1.5,10,\n"
        '2025-01-01 10:05:00,A,1.5,10,"open\n'
        "2025-01-01 10:06:00,A,1.5,10.5,\n"
        "2025-01-01 10:07:00,A,-1,10,\n"
        "2025-01-01 10:08:00,A,1.5,10,a\0b\n"
        f"2025-01-01 10:09:00,A,1.5,10,{long}\n"
        "2025-01-01 10:10:00,A,inf,10,\n"
        '2025-01-01 10:11:00,A,NaN,10,"a ""quoted"", text"\n'
        '2025-01-01 10:12:00,A,+.5,N/A,6" pipe\n'
        "2025-01-01 10:13:00,A,1"
    )
    found = parsed(tmp_path, text)
    assert found.values("line", "price", "volume", "note") == [
        (2, 1.5, 10, "fine"),
        (14, None, 10, 'a "quoted", text'),
        (15, 0.5, None, '6" pipe'),
    ]
    assert sorted(bad[:4] for bad in found.bad) == [
        (3, "not_a_number", "price", "abc"),
        (4, "columns", None, "3 cells where the header has 5"),
        (6, "bad_time", "ts", "yesterday"),
        (7, "missing", "ticker", ""),
        (8, "quotes", None, None),
        (9, "not_a_whole_number", "volume", "10.5"),
        (10, "out_of_range", "price", "-1"),
        (11, "nul_byte", None, None),
        (12, "long_line", None, None),
        (13, "not_a_number", "price", "inf"),
        (16, "columns", None, "3 cells where the header has 5"),
    ]
    raw = {bad[0]: bad[4] for bad in found.bad}
    assert raw[3] == "2025-01-01 10:01:00,A,abc,10,"
    assert len(raw[12]) == lines.KEPT
    assert found.counts["a.csv"]["rows_read"] == 14


@pytest.mark.few(1)
@pytest.mark.parametrize("chunk", [7, 64, 4 << 20])
def test_blocks_of_any_size_number_lines_alike(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(lines, "CHUNK", chunk)
    monkeypatch.setattr(lines, "LONGEST", 100)
    text = "ts,ticker,price,volume,note\r\n" + "".join(
        f"2025-01-01 10:00:{n:02d},A,{n},1,{'y' * 300 if n == 5 else ''}\r\n" for n in range(20)
    )
    found = parsed(tmp_path, text.encode("utf-16"))
    assert found.values("line", "price") == [(n + 2, float(n)) for n in range(20) if n != 5]
    assert [bad[:2] for bad in found.bad] == [(7, "long_line")]


def test_an_endless_line_needs_no_memory(tmp_path):
    class Endless(io.RawIOBase):
        """Three gigabytes without a line end, then a good line."""

        left = 3 << 30

        def read(self, size=-1):
            if self.left > 0:
                self.left -= 256 << 20
                return b"x" * (1 << 20) if self.left > 0 else b"x\ngood\n"
            return b""

    found = list(lines.blocks(Endless(), "utf-8"))
    assert [bad.reason for block in found for bad in block.bad] == ["long_line"]
    assert [line for block in found for line in block.lines] == [b"good"]
    assert [int(n) for block in found for n in block.numbers] == [2]


@pytest.mark.few(1)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings(tmp_path, encoding):
    declared = "cp1252" if encoding == "cp1252" else "utf-8"
    text = "ts;ticker;Preis €;volume;note\n2025-06-01T10:00:00;Ä;1.234,5;7;ß\n"
    yaml = BARS + f"    encoding: {declared}\n    delimiter: ';'\n    decimal: ','\n    thousands: '.'\n"
    yaml += "    map: {price: 'Preis €'}\n"
    found = parsed(tmp_path, text.encode(encoding), yaml)
    assert found.values("ticker", "price", "volume", "note") == [("Ä", 1234.5, 7, "ß")]
    assert found.times() == ["01 08:00:00"]


def test_short_rows_are_set_aside_or_filled(tmp_path):
    text = 'ts,ticker,price,volume,note\n2025-01-01,A,1\n2025-01-02,"A",2,5,x\n2025-01-03,A,3,5,x,y\n2025-01-04,"B,C"\n'
    found = parsed(tmp_path, text)
    assert [row["line"] for row in found.rows] == [3] and [bad[:2] for bad in found.bad] == [
        (2, "columns"), (4, "columns"), (5, "columns")
    ]  # fmt: skip
    other = tmp_path / "other"
    other.mkdir()
    found = parsed(other, text, BARS + "    short_rows: fill\n")
    assert found.values("line", "ticker", "price", "volume", "note") == [
        (2, "A", 1.0, None, None), (3, "A", 2.0, 5, "x"), (5, "B,C", None, None, None)
    ]  # fmt: skip
    assert [(bad[0], bad[1], bad[4]) for bad in found.bad] == [(4, "columns", "2025-01-03,A,3,5,x,y")]


def test_undecodable_bytes_cost_only_their_line(tmp_path):
    good = "ts,ticker,price,volume,note\n2025-06-01T10:00:00,A,1,1,\ufffd\n".encode()
    found = parsed(tmp_path, good + b"2025-06-01T10:01:00,A,1,1,\xff\n2025-06-01T10:02:00,A,1,1,\n")
    assert [row["line"] for row in found.rows] == [2, 4]
    assert [bad[:2] for bad in found.bad] == [(3, "bad_encoding")]


def test_daylight_saving(tmp_path):
    def row(text, key="A"):
        return f"2025-{text},{key},1,1,\n"

    text = "ts,ticker,price,volume,note\n"
    # 30 March: 02:30 does not exist and is shifted by the gap. 26 October: 02:30 happens twice.
    text += row("03-30 01:59:59") + row("03-30 02:30:00") + row("03-30 03:00:00")
    text += row("10-26 02:00:00") + row("10-26 02:30:00") + row("10-26 02:30:00", "B") + row("10-26 02:10:00")
    text += row("10-26 02:50:00") + row("10-26 02:40:00", "B") + row("10-26 03:00:00")
    found = parsed(tmp_path, text)
    assert found.times() == [
        "30 00:59:59", "30 01:30:00", "30 01:00:00",
        "26 00:00:00", "26 00:30:00", "26 00:30:00", "26 01:10:00",
        "26 01:50:00", "26 00:40:00", "26 02:00:00",
    ]  # fmt: skip
    counts = found.counts["a.csv"]
    assert (counts["dst_gap"], counts["dst_double"]) == (1, 6)


def test_offsets_of_all_forms_in_one_file(tmp_path):
    stamps = ["2025-01-01T12:00:00Z", "2025-01-01 12:00:00+01:00", "2025-01-01 12:00-0530", "2025-01-01T12+01"]
    stamps += ["2025-01-01 12:00:00.123456789", "2025-01-01"]
    text = "ts,ticker,price,volume,note\n" + "".join(f"{stamp},A,1,1,\n" for stamp in stamps)
    found = parsed(tmp_path, text)
    times = [row["ts"].strftime("%d %H:%M:%S.%f") for row in found.rows]
    assert times == [
        "01 12:00:00.000000", "01 11:00:00.000000", "01 17:30:00.000000", "01 11:00:00.000000",
        "01 11:00:00.123456", "31 23:00:00.000000",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "good", "wrong"),
    [
        ("epoch_s", "1700000000.25", ["1700000000000", "1700000000000000", "-9e9", "1e300"]),
        ("epoch_ms", "1700000000250", ["1700000000", "1700000000000000", "0"]),
        ("epoch_us", "1700000000250000", ["1700000000", "1700000000000", "9e15"]),
    ],
)
def test_numbers_that_count_another_unit(tmp_path, form, good, wrong):
    text = "ts,ticker,price,volume,note\n" + "".join(f"{stamp},A,1,1,\n" for stamp in [good, *wrong, "soon"])
    found = parsed(tmp_path, text, BARS.replace("iso", form))
    assert [row["ts"].isoformat() for row in found.rows] == ["2023-11-14T22:13:20.250000+00:00"]
    expected = [(at, "time_unit", "ts", stamp) for at, stamp in enumerate(wrong, 3)]
    assert [bad[:4] for bad in found.bad] == [*expected, (len(wrong) + 3, "bad_time", "ts", "soon")]


def test_times_outside_the_years_that_are_declared(tmp_path):
    stamps = ["1899-12-31T22:59:59", "1900-01-01T01:00:00", "2199-12-31T23:59:59Z", "2200-01-01T00:00:00Z"]
    text = "ts,ticker,price,volume,note\n" + "".join(f"{stamp},A,1,1,\n" for stamp in stamps)
    found = parsed(tmp_path, text)
    assert [row["line"] for row in found.rows] == [3, 4]
    assert [bad[:4] for bad in found.bad] == [(2, "time_range", "ts", stamps[0]), (5, "time_range", "ts", stamps[3])]
    other = tmp_path / "other"
    other.mkdir()
    wider = BARS.replace("format: iso", "format: iso, earliest: 1850-01-01, latest: 2199-12-30")
    assert [row["line"] for row in parsed(other, text, wider).rows] == [2, 3]


def test_finer_digits_are_cut_and_numbers_go_to_the_nearest_microsecond(tmp_path):
    text = "ts,ticker,price,volume,note\n2025-01-01T23:59:59.9999999Z,A,1,1,\n1969-12-31T23:59:59.9999999Z,A,1,1,\n"
    times = [row["ts"].isoformat() for row in parsed(tmp_path, text).rows]
    assert times == ["2025-01-01T23:59:59.999999+00:00", "1969-12-31T23:59:59.999999+00:00"]
    other = tmp_path / "other"
    other.mkdir()
    found = parsed(other, "ts,ticker,price,volume,note\n1700000000.0000006,A,1,1,\n", BARS.replace("iso", "epoch_s"))
    assert (
        found.rows[0]["ts"].microsecond in (0, 1) and abs(found.rows[0]["ts"].timestamp() - 1700000000.0000006) < 1e-6
    )


def test_sentinels_and_units(tmp_path):
    yaml = BARS.replace("volume: {type: long}", "volume: {type: long}\n  kmh: {type: double}")
    yaml += "    map:\n      price: {sentinels: [-1, 999.9, {value: 0, when: {volume: '> 0'}}]}\n"
    yaml += "      kmh: {column: mph, scale: 1.609344, round: 1}\n"
    yaml += "      volume: {sentinels: [4294967295]}\n"
    rows = ["-1,1,10", "999.9,1,", "0,5,62", "0,0,0", "7,4294967295,1", "7,4294967294,1"]
    text = "ts,ticker,price,volume,mph\n" + "".join(f"2025-01-01 0{n}:00:00,A,{r}\n" for n, r in enumerate(rows))
    found = parsed(tmp_path, text, yaml)
    assert found.values("price", "volume", "kmh") == [
        (None, 1, 16.1), (None, 1, None), (None, 5, 99.8), (0.0, 0, 0.0), (7.0, None, 1.6), (7.0, 4294967294, 1.6),
    ]  # fmt: skip


def test_archives_and_damage(tmp_path):
    text = "ts,ticker,price,volume,note\n" + "".join(f"2025-01-01 10:00:{n:02d},A,{n},1,\n" for n in range(60))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("in/one.csv", text)
        writer.writestr("two.csv", text)
        writer.writestr("readme.txt", "no data")
    yaml = BARS + "    members: '*.csv'\n"
    noise = os.urandom(3000).hex()
    packed = gzip.compress((text + noise).encode())
    found = Parsed(
        tmp_path, yaml, **{"a.zip": archive.getvalue(), "b.gz": packed[:-1500], "c.zip": b"PK\x03\x04junk", "d.csv": ""}
    )
    assert set(found.counts) == {"a.zip!in/one.csv", "a.zip!two.csv", "b.gz", "c.zip", "d.csv"}
    ids = {path: f.file_id for path, f in found.landing.files.items()}
    assert ids["a.zip!in/one.csv"] == ids["a.zip!two.csv"]
    assert {path: counts["rows_raw"] for path, counts in found.counts.items()} == {
        "a.zip!in/one.csv": 60, "a.zip!two.csv": 60, "b.gz": 60, "c.zip": 0, "d.csv": 0,
    }  # fmt: skip
    assert [bad[:2] for bad in found.bad] == [(0, "damaged"), (0, "damaged_archive"), (0, "empty")]


def test_json_map_with_a_time_given_twice_and_wide_rows(tmp_path):
    yaml = BARS.replace("- time: {column: ts, format: iso}", "- kind: json_map\n    map: {ticker: {constant: S}}")
    yaml = yaml.replace("ticker: {constant: S}", "ticker: {constant: S}, price: value")
    text = '{"2025-01-01T01:00:00": "6", "2025-01-01T01:00:00": 7.5, "x": 1}\n[1]\n{"2025-01-02": null}\n'
    found = parsed(tmp_path, text, yaml)
    assert found.values("line", "entry", "price") == [(1, 0, 6.0), (1, 1, 7.5), (3, 0, None)]
    assert sorted(bad[:2] for bad in found.bad) == [(1, "bad_time"), (2, "bad_json")]

    wide = BARS + "    unpivot: {columns: {R1: a, R2: b}, into: price}\n"
    other = tmp_path / "wide"
    other.mkdir()
    found = parsed(other, "ts,R1,R2\n2025-01-01,1,x\n2025-01-02,,4\n", wide)
    assert found.values("ticker", "line", "entry", "price") == [("a", 2, 0, 1.0), ("b", 3, 1, 4.0)]
    assert [bad[:4] for bad in found.bad] == [(2, "not_a_number", "price", "x")]


def test_types_by_column_and_renamed_header(tmp_path):
    yaml = BARS.replace("type: Bar", "type: {column: kind, map: {T: Trade, Q: Quote}}")
    yaml = yaml.replace("- time", "- header: [symbol]\n    map: {ticker: symbol}\n    time: {column: when}\n  - time")
    new = "kind,when,symbol\nT,2025-01-01,A\nZ,2025-01-01,A\n"
    old = "price,ts,kind,ticker\n1,2025-01-01,Q,B\n"
    found = Parsed(tmp_path, yaml, **{"new.csv": new, "old.csv": old, "other.csv": "a,b\n1,2\n"})
    assert found.values("type", "ticker", "price") == [("Trade", "A", None), ("Quote", "B", 1.0)]
    assert [bad[:2] for bad in found.bad] == [(3, "unknown_type"), (0, "no_format")]


def test_checksums_are_remembered_until_the_file_changes(tmp_path, monkeypatch):
    from chainlake.ingest.landing import discovery

    # Its time is set back below, and that it was changed then is not to be seen.
    monkeypatch.setattr(discovery, "_MTIME_GRAIN_S", 0.0)
    first = parsed(tmp_path, "ts,ticker,price,volume,note\n2025-01-01,A,1,1,\n")
    file = first.home.landing("x") / "a.csv"
    os.utime(file, (1e9, 1e9))
    discover(first.home, first.source, datetime.now(UTC))
    read: list[str] = []
    real = discovery._checked
    monkeypatch.setattr(discovery, "_checked", lambda f, member: read.append(f) or real(f, member))
    again = discover(first.home, first.source, datetime.now(UTC))
    assert read == [] and again.files["a.csv"].file_id == first.landing.files["a.csv"].file_id
    file.write_text("ts,ticker,price,volume,note\n2025-01-02,A,1,1,\n")
    changed = discover(first.home, first.source, datetime.now(UTC))
    assert read == [str(file)] and changed.files["a.csv"].file_id != again.files["a.csv"].file_id


def test_another_version_of_the_parser_takes_the_checksums_again(tmp_path, monkeypatch):
    """It may unpack the same file to other bytes."""
    from chainlake.ingest.landing import discovery

    monkeypatch.setattr(discovery, "_MTIME_GRAIN_S", 0.0)
    first = parsed(tmp_path, "ts,ticker,price,volume,note\n2025-01-01,A,1,1,\n")
    file = first.home.landing("x") / "a.csv"
    read: list[str] = []
    real = discovery._checked
    monkeypatch.setattr(discovery, "_checked", lambda f, member: read.append(f) or real(f, member))
    discover(first.home, first.source, datetime.now(UTC))
    read.clear()
    discover(first.home, first.source, datetime.now(UTC))
    assert read == []
    monkeypatch.setattr(discovery, "parser_version", lambda source: 99)
    discover(first.home, first.source, datetime.now(UTC))
    assert read == [str(file)]


def test_a_folder_with_the_name_of_a_file_is_a_folder(tmp_path):
    folder = tmp_path / "landing" / "x" / "x.csv"
    folder.mkdir(parents=True)
    (folder / "y.csv").write_text("ts,ticker,price,volume,note\n2025-01-01,A,1,1,\n")
    (folder / "empty.csv").mkdir()
    found = Parsed(tmp_path, BARS)
    assert list(found.landing.files) == ["x.csv/y.csv"] and len(found.rows) == 1


def test_a_file_that_is_still_being_written_waits(tmp_path, monkeypatch):
    from chainlake.ingest.landing import discovery

    text = "ts,ticker,price,volume,note\n2025-01-01,A,1,1,\n"
    real = discovery._contents

    def growing(source, file):
        contents = real(source, file)
        if Path(file).name == "grows.csv":
            with open(file, "a") as stream:
                stream.write("2025-01-02,A,1,1,\n")
        return contents

    monkeypatch.setattr(discovery, "_contents", growing)
    names = {name: text for name in ("grows.csv", "still.csv.part", ".hidden.csv", "whole.csv")}
    found = Parsed(tmp_path, BARS, **names)
    assert (list(found.landing.files), list(found.landing.waiting)) == (["whole.csv"], ["grows.csv"])
    # With a time to settle, a young file waits, however it looks.
    young = discover(found.home, dataclasses.replace(found.source, settle=timedelta(hours=1)), datetime.now(UTC))
    assert young.files == {} and list(young.waiting) == ["grows.csv", "whole.csv"]


@pytest.mark.parametrize("worth", [1, 2, 3])
def test_blocks_made_ahead_are_the_same_in_the_same_order(worth):
    """Blocks of one and of two lines, of which all, the longer ones, or none are worth a thread."""
    made = []

    def numbered(stop, error=None):
        for number in range(stop):
            made.append(number)
            yield lines.Block([b"x"] * (1 + number // 2 % 2), np.array([number]), [])
        if error is not None:
            raise error

    def ahead(found):
        return lines.ahead(found, lambda block: len(block.lines) >= worth)

    for stop in range(6):
        assert [int(block.numbers[0]) for block in ahead(numbered(stop))] == list(range(stop))
    for stop in range(6):
        seen = []
        with pytest.raises(OSError, match="gone"):
            for block in ahead(numbered(stop, OSError("gone"))):
                seen.append(int(block.numbers[0]))
        assert seen == list(range(stop))
    made.clear()
    for block in ahead(numbered(100)):
        if block.numbers[0] == 3:
            break
    # One more is made while another is worked on, if that has enough lines.
    assert made == ([0, 1, 2, 3, 4] if worth < 3 else [0, 1, 2, 3])
