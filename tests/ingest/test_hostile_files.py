"""Files that are wrong in ways nobody intends: every good row is kept with its line, every bad one is said."""

from __future__ import annotations

import io
import itertools
import os
import tarfile
import zipfile
from datetime import date

import pyarrow as pa
import pytest

from chainlake.ingest.landing.container import Damaged, NotReadable, members, open_bytes
from chainlake.ingest.rows import lines, parse, text_columns, typed
from chainlake.ingest.rows.casts import times
from tests.ingest.test_parse import BARS, Parsed, parsed

pytestmark = pytest.mark.slow

HEAD = "ts,ticker,price,volume,note\n"


def row(minute: int, rest: str = "A,1,1,x") -> str:
    return f"2025-01-01 10:{minute:02d}:00,{rest}\n"


def fate(found: Parsed) -> dict[int, str]:
    """What became of each line: ``row``, or the reason against it."""
    return {r["line"]: "row" for r in found.rows} | {bad[0]: bad[1] for bad in found.bad}


@pytest.mark.parametrize("size", [20, 70, 4 << 20])
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("2025-01-01 10:01:00,A\rB,1,1,x\n", "carriage_return"),
        ('2025-01-01 10:01:00,A,1,1,"open\n', "quotes"),
        ('2025-01-01 10:01:00,A,1,1.5" x,"\n', "quotes"),
        ('"2025-01-01 10:01:00,A,1,1,x\n', "quotes"),
        ('"\n', "quotes"),
        ('2025-01-01 10:01:00,A,1,1,"a\rb","\n', "quotes"),
        ("\r2025-01-01 10:01:00,A,1,1,x\n", "carriage_return"),
        ('2025-01-01 10:01:00,A,1,1,"x\ry"\n', "row"),
        ('2025-01-01 10:01:00,A,1,1,5" disk\n', "row"),
        ('2025-01-01 10:01:00,A,1,1,"5"" disk, ""new"""\n', "row"),
        ("2025-01-01 10:01:00,A,1,1,x\r\r\n", "row"),
        ("\ufeff2025-01-01 10:01:00,A,1,1,x\n", "row"),
        ("\ufeff\ufeff" + HEAD, "bad_time"),
    ],
)
def test_a_line_costs_no_other_line(tmp_path, monkeypatch, size, bad, reason):
    monkeypatch.setattr(lines, "CHUNK", size)
    text = HEAD + row(0) + row(1, 'A,1,1,"q, r"') + bad + row(3) + bad + bad + row(6, 'A,1,1,"s"') + row(7)
    found = parsed(tmp_path, text)
    assert fate(found) == {2: "row", 3: "row", 4: reason, 5: "row", 6: reason, 7: reason, 8: "row", 9: "row"}
    notes = {r["line"]: r["note"] for r in found.rows}
    assert [notes[line] for line in (3, 5, 8, 9)] == ["q, r", "x", "s", "x"]


def test_lines_with_quotes_of_all_kinds_are_told_apart_alike_in_any_company(tmp_path):
    parts = ['"', '""', "x", ",", "\r", " "]
    texts = ["".join(some) for n in (1, 2, 3, 4) for some in itertools.product(parts, repeat=n)]
    rows = [f"2025-01-01,A,1,1,{text}\n" for text in texts]
    alone = {}
    for at in range(0, len(rows), 40):
        # With good lines between them, each is read as by itself.
        some = rows[at : at + 40]
        folder = tmp_path / f"few{at}"
        folder.mkdir()
        found = parsed(folder, HEAD + "".join(one + row(0) for one in some))
        outcome = fate(found)
        assert all(outcome[2 * n + 3] == "row" for n in range(len(some)))
        notes = {r["line"]: r["note"] for r in found.rows}
        alone.update({at + n: (outcome[2 * n + 2], notes.get(2 * n + 2)) for n in range(len(some))})
    found = parsed(tmp_path, HEAD + "".join(rows))
    outcome, notes = fate(found), {r["line"]: r["note"] for r in found.rows}
    assert {n: (outcome[n + 2], notes.get(n + 2)) for n in range(len(rows))} == alone
    counts = found.counts["a.csv"]
    assert counts["rows_read"] == len(rows) == len(found.rows) + len(found.bad)


def test_json_that_holds_what_no_table_can(tmp_path):
    yaml = BARS.replace("- time: {column: ts, format: iso}", "- kind: json_map\n    map: {ticker: {constant: S}}")
    deep = '{"a":' * 2000 + "1" + "}" * 2000
    entries = [
        '{"2025-01-01": "\\ud800", "2025-01-02": 5, "\\udfff": 1, "2025-01-03": "\\ud83d\\ude00"}',
        f'{{"2025-01-04": {deep}}}',
        f'{{"2025-01-05": {"9" * 5000}, "2025-01-06": 1e400, "2025-01-07": Infinity, "2025-01-08": 7}}',
        '{"2025-01-09": [1], "2025-01-10": {"a": 1}, "2025-01-11": true, "2025-01-12": "a\\u0000b"}',
        '{"2025-01-13": "' + "[" * 500 + '"}',
        '\ufeff{"2025-01-14": 14}',
    ]
    numbers = parsed(tmp_path, "\n".join(entries), yaml.replace("{constant: S}", "{constant: S}, price: value"))
    assert numbers.values("line", "entry", "price") == [(1, 1, 5.0), (3, 3, 7.0), (6, 0, 14.0)]
    reasons = sorted((bad[0], bad[1]) for bad in numbers.bad)
    assert reasons == [
        (1, "bad_encoding"), (1, "bad_encoding"), (1, "not_a_number"), (2, "bad_json"),
        (3, "not_a_number"), (3, "not_a_number"), (3, "not_a_number"),
        (4, "bad_json"), (4, "bad_json"), (4, "not_a_number"), (4, "nul_byte"), (5, "not_a_number"),
    ]  # fmt: skip
    other = tmp_path / "texts"
    other.mkdir()
    texts = parsed(other, "\n".join(entries), yaml.replace("{constant: S}", "{constant: S}, note: value"))
    recorded = {(r["line"], r["entry"]): r["note"] for r in texts.rows}
    assert recorded[1, 3] == "\N{GRINNING FACE}" and recorded[3, 0] == "9" * 5000 and recorded[3, 1] == "1e400"
    assert recorded[4, 2] == "true" and recorded[5, 0] == "[" * 500


@pytest.mark.parametrize("size", [16, 4 << 20])
def test_halves_of_two_byte_text_cost_their_line(tmp_path, monkeypatch, size):
    monkeypatch.setattr(lines, "CHUNK", size)
    half = HEAD.encode("utf-16") + row(0).encode("utf-16-le") + b"\x00\xd8" + row(1).encode("utf-16-le")
    half += row(2).encode("utf-16-le")[:-2] + b"\x00\xd8\n\0" + row(3).encode("utf-16-le")
    assert fate(parsed(tmp_path, half)) == {2: "row", 3: "bad_encoding", 4: "bad_encoding", 5: "row"}


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", b"\0\0\xfe\xff"])
@pytest.mark.parametrize("size", [16, 4 << 20])
def test_bytes_that_look_like_the_mark_of_another_encoding_cost_their_line(tmp_path, monkeypatch, mark, size):
    monkeypatch.setattr(lines, "CHUNK", size)
    yaml = "columns: [ts, ticker, price, volume, note]\n    time: {column: ts, format: iso}"
    found = fate(
        parsed(
            tmp_path, mark + "".join(map(row, range(3))).encode(), BARS.replace("time: {column: ts, format: iso}", yaml)
        )
    )
    assert found.pop(1) in ("bad_encoding", "nul_byte") and found == {2: "row", 3: "row"}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_text_of_few_plain_characters_is_read_by_its_mark(tmp_path, encoding):
    rows = "".join(row(n, "A,1,1," + "\u6f22" * 300) for n in range(3))
    assert fate(parsed(tmp_path, (HEAD + rows).encode(encoding))) == {2: "row", 3: "row", 4: "row"}


@pytest.mark.parametrize("size", [16, 40, 4 << 20])
def test_a_header_line_is_no_row_however_bad(tmp_path, monkeypatch, size):
    monkeypatch.setattr(lines, "CHUNK", size)
    text = b"ts,ticker,price,volume,note,\xff\0\n" + row(0, "A,1,1,x,y").encode() + b"\n" + row(2, "A,1,1,x,y").encode()
    found = parsed(tmp_path, text)
    assert fate(found) == {2: "row", 4: "row"} and found.counts["a.csv"]["rows_read"] == 2


@pytest.mark.parametrize("end", ["\r", "\x85", "\u2028", "\v", "\f", "\x1e", "\0"])
@pytest.mark.parametrize("last", ["", "\n"])
@pytest.mark.parametrize(
    ("form", "first", "where"),
    [
        ("time: {column: ts, format: iso}", HEAD, "line 1, the header line, holds"),
        (
            "skip_lines: 1\n    columns: [ts, ticker, price, volume, note]\n    time: {column: ts, format: iso}",
            "made by hand\n",
            "line 1, a line that 'skip_lines' passes over, holds",
        ),
    ],
)
def test_no_row_is_lost_in_a_line_that_is_none(tmp_path, end, last, form, first, where):
    text = (first + row(0) + row(1)).replace("\n", end) + last
    found = parsed(tmp_path, text, BARS.replace("time: {column: ts, format: iso}", form))
    assert found.rows == [] and [bad[:2] for bad in found.bad] == [(0, "no_format")]
    said = found.counts["a.csv"]["reason"]
    assert where in said or "its lines end in lone carriage returns" in said


def test_other_ends_of_lines_may_stand_in_quotes_of_a_header(tmp_path):
    text = HEAD.replace("note", 'note,"in\vUSD"') + row(0, "A,1,1,x,y")
    assert fate(parsed(tmp_path, text)) == {2: "row"}


def test_a_file_without_a_row_that_can_be_used_is_not_read_as_it_should_be(tmp_path):
    found = Parsed(tmp_path, BARS, **{"a.csv": HEAD + row(0, "A,x,1,") * 2, "b.csv": HEAD + row(0, "A,x,1,") + row(1)})
    counts = found.counts["a.csv"]
    assert (counts["outcome"], counts["rows_quarantined"], counts["whole_file"]) == ("no_row", 2, 0)
    assert counts["reason"] == "none of its rows can be used; quarantine has 2"
    assert [bad[:2] for bad in found.bad] == [(2, "not_a_number"), (3, "not_a_number"), (2, "not_a_number")]
    assert found.counts["b.csv"]["outcome"] == "ok"


def test_a_delimiter_ends_no_line(tmp_path):
    form = BARS.replace("time: {column: ts, format: iso}", 'delimiter: "\\v"\n    time: {column: ts, format: iso}')
    assert fate(parsed(tmp_path, (HEAD + row(0)).replace(",", "\v"), form)) == {2: "row"}


@pytest.mark.parametrize("size", [50, 4 << 20])
def test_a_line_as_long_as_is_allowed_is_a_row_however_it_is_read(tmp_path, monkeypatch, size):
    monkeypatch.setattr(lines, "CHUNK", size)
    monkeypatch.setattr(lines, "LONGEST", 100)
    fits = row(0).rstrip("\n").ljust(99, "x") + "\r\n"
    longer = row(0).rstrip("\n").ljust(100, "x") + "\r\n"
    assert fate(parsed(tmp_path, HEAD + fits + longer + row(2))) == {2: "row", 3: "long_line", 4: "row"}


class Broken:
    """A parser that fails at every line with the word."""

    def __init__(self, word: bytes) -> None:
        self.word = word
        self.real = text_columns.read_block

    def __call__(self, block, *rest):
        if any(self.word in line for line in block.lines):
            raise KeyError("no such thing \ud800")
        return self.real(block, *rest)


def test_an_error_that_nobody_foresaw_costs_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(text_columns, "read_block", Broken(b"evil"))
    text = HEAD + "".join(row(n, "A,1,1,evil" if n in (3, 17) else "A,1,1,x") for n in range(40))
    found = Parsed(tmp_path, BARS, **{"a.csv": text, "b.csv": HEAD + row(0)})
    assert [bad[:2] for bad in found.bad] == [(5, "parser_error"), (19, "parser_error")]
    assert "KeyError" in found.bad[0][3] and found.bad[0][4].endswith("evil")
    assert len(found.rows) == 39 and found.counts["a.csv"]["outcome"] == "ok"


@pytest.mark.parametrize("size", [150, 100_000])
def test_what_a_thread_could_not_read_ahead_is_read_line_by_line(tmp_path, monkeypatch, size):
    monkeypatch.setattr(text_columns, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(lines, "CHUNK", size)
    monkeypatch.setattr(text_columns, "read_block", Broken(b"evil"))
    wrong = (3, 17, 18, 39)
    text = HEAD + "".join(row(n, "A,1,1,evil" if n in wrong else "A,1,1,x") for n in range(40))
    found = Parsed(tmp_path, BARS, **{"a.csv": text})
    assert [bad[:2] for bad in found.bad] == [(n + 2, "parser_error") for n in wrong]
    assert [line["line"] for line in found.rows] == [n + 2 for n in range(40) if n not in wrong]


def test_a_file_at_which_the_parser_fails_throughout_is_one_row_and_stops_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(text_columns, "read_block", Broken(b"evil"))
    few, many = (HEAD + "".join(row(k % 60, "A,1,1,evil") for k in range(n)) for n in (20, 5000))
    mixed = HEAD + row(0) + "".join(row(k % 60, "A,1,1,evil") for k in range(5000))
    files = {"a.csv": few, "b.csv": many, "c.csv": HEAD + row(0), "d.csv": mixed}
    found = Parsed(tmp_path, BARS, **files)
    assert {name: (c["outcome"], c["rows_raw"], c["whole_file"]) for name, c in found.counts.items()} == {
        "a.csv": ("parser_error", 0, 1), "b.csv": ("parser_error", 0, 1), "c.csv": ("ok", 1, 0),
        "d.csv": ("parser_error", 1, 1),
    }  # fmt: skip
    assert [bad[:2] for bad in found.bad if bad[0] == 0] == [(0, "parser_error")] * 3
    assert found.counts["d.csv"]["rows_quarantined"] == parse.MOST_FAILED + 1


@pytest.mark.parametrize("lines_of_it", [3, 300])
def test_a_parser_at_a_loss_is_said_before_what_else_is_wrong_with_a_file(tmp_path, monkeypatch, lines_of_it):
    monkeypatch.setattr(text_columns, "read_block", Broken(b"evil"))
    yaml = BARS.replace("formats:", "path: 'a_(?P<date>\\d{8})'\nformats:")
    text = HEAD + "".join(row(k % 60, "A,1,1,evil") for k in range(lines_of_it))
    found = Parsed(tmp_path, yaml, **{"a_20240231.csv": text})
    assert found.counts["a_20240231.csv"]["outcome"] == "parser_error"
    assert [bad[:2] for bad in found.bad] == [(0, "parser_error")] and "20240231" in found.bad[0][4]


def test_what_fails_after_a_double_hour_began_leaves_no_trace(tmp_path, monkeypatch):
    real = typed.TypedRows.attributes

    def failing(rows):
        if any(note.as_py() == "evil" for note in rows._origin("note")):
            raise ValueError("evil")
        return real(rows)

    monkeypatch.setattr(typed.TypedRows, "attributes", failing)
    times = ["01:30", "02:10", "02:50", "02:05", "02:55", "03:10"]
    text = HEAD + "".join(f"2025-10-26 {t},A,1,1,{'evil' if n == 5 else 'x'}\n" for n, t in enumerate(times))
    found = parsed(tmp_path, text)
    assert found.times() == [f"{d} {t}:00" for d, t in (
        ("25", "23:30"), ("26", "00:10"), ("26", "00:50"), ("26", "01:05"), ("26", "01:55"))]  # fmt: skip
    assert found.counts["a.csv"]["dst_double"] == 4 and found.counts["a.csv"]["rows_read"] == 6


def test_a_member_whose_name_is_no_text_is_read(tmp_path):
    folder = tmp_path / "landing" / "x"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("bars_ä.csv", HEAD + row(0) + row(1))
    data = (folder / "a.zip").read_bytes()
    (folder / "a.zip").write_bytes(data.replace("bars_ä".encode(), b"bars_\xff\xfe"))
    found = Parsed(tmp_path, BARS)
    assert len(found.rows) == 2 and found.bad == []


def test_times_far_from_the_date_of_the_file(tmp_path):
    yaml = BARS.replace("formats:", "path: 'a_(?P<date>\\d{8})'\nformats:")
    stamps = ["1900-01-02", "1970-01-01", "1994-05-31", "1994-06-02", "2024-06-01", "2054-05-30", "2054-06-03"]
    stamps.append("2199-01-01")
    text = HEAD + "".join(f"{stamp} 10:00:00,A,1,1,\n" for stamp in stamps)
    found = Parsed(tmp_path, yaml, **{"a_20240601.csv": text, "b.csv": text})
    assert [r["line"] for r in found.rows] == [5, 6, 7, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [bad[:4] for bad in found.bad] == [
        (n + 2, "time_range", "ts", f"{stamps[n]} 10:00:00") for n in (0, 1, 2, 6, 7)
    ]
    assert found.counts["a_20240601.csv"]["days"][0] == (date(1994, 6, 2) - date(1970, 1, 1)).days
    near = tmp_path / "near"
    near.mkdir()
    nearer = yaml.replace("format: iso", "format: iso, around: 36 h")
    stamps = ["2024-05-29", "2024-05-30", "2024-06-03", "2024-06-04"]
    text = HEAD + "".join(f"{stamp} 10:00:00,A,1,1,\n" for stamp in stamps)
    assert [r["line"] for r in Parsed(near, nearer, **{"a_20240601.csv": text}).rows] == [3, 4]


def archive(members: dict[str, str], comment: bytes = b"") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, text in members.items():
            file.writestr(name, text)
        file.comment = comment
    return packed.getvalue()


@pytest.mark.parametrize(
    "packed",
    [
        archive({"a.csv": "1"}) + archive({"b.csv": "2"}),
        archive({"a.csv": "1"}) + archive({"b.csv": "2"})[:-25],
        archive({"a.csv": "1"}, b"PK\x05\x06" + bytes(18) + b"x" * 100),
    ],
    ids=["two joined", "the second broken off", "an end of a directory in the comment"],
)
def test_members_that_an_archive_does_not_list_are_not_lost_in_silence(tmp_path, packed):
    path = tmp_path / "x.zip"
    path.write_bytes(packed)
    with pytest.raises(Damaged, match="members that its directory does not list"):
        members(str(path), "*")


@pytest.mark.parametrize("more", [b"", bytes(600), b"\n"])
def test_what_fills_an_archive_up_is_no_damage(tmp_path, more):
    path = tmp_path / "x.zip"
    path.write_bytes(archive({"a.csv": "1"}, b"" if more else b"of our vendor") + more)
    assert members(str(path), "*") == {"a.csv": 1}


def test_a_pipe_in_the_place_of_a_file_that_was_listed_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.csv")
    with pytest.raises(NotReadable, match="a pipe, socket or device"), open_bytes(str(tmp_path / "x.csv"), None):
        raise AssertionError("it was opened")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("%Y-%m-%dT%H:%M:%S.%f", "2025-01-02T10:00:{}.5"),
        ("%Y%m%d%H%M%S", "202501021000{}"),
        ("%d/%m/%Y %I:%M:%S %p", "02/01/2025 11:59:{} PM"),
        ("%Y-%m-%d %H:%M:%S %z", "2025-01-02 23:59:{} +01:00"),
        ("iso", "2025-01-02T10:00:{}"),
    ],
)
def test_a_leap_second_does_not_become_the_next_minute(form, text):
    said = ["59", "60", "61", "00", "01"]
    found = times(pa.array([text.format(second) for second in said]), form)
    assert found.bad.tolist() == [False, True, True, False, False]


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_members_of_a_tar_archive_are_not_read_as_one_file(tmp_path, form):
    """They would have the date of the archive, all of them, where times are of a day that the name gives."""
    yaml = BARS.replace("formats:\n  - time: {column: ts, format: iso}\n", "path: '(?P<date>\\d{8})'\nformats:\n")
    yaml += "  - columns: [ts, ticker, price]\n    time: {column: ts, format: s_of_day}\n"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=form) as archive:
        for day in (1, 2):
            text = "".join(f"{minute * 60},A,{day}\n" for minute in range(3)).encode()
            member = tarfile.TarInfo(f"2025010{day}.csv")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    found = parsed(tmp_path, packed.getvalue(), yaml, "20250101.tar.gz")
    assert not found.rows and [bad[:2] for bad in found.bad] == [(0, "no_format")]
    assert "it is a tar archive; only text is read" in found.bad[0][4]
