"""A file whose header is not the definition's: said with place and nearest name, never read as nulls."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import tarfile
import zipfile
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from chainlake.cli.main import main
from chainlake.definitions.source import Source, load_source
from chainlake.ingest.rows.parse import read_file
from chainlake.ingest.rows.parsed import Task
from chainlake.ingest.source_lint import SourceReport, lint_source
from chainlake.lake.records import ops
from chainlake.paths import PROJECT, Home

TEXT = """\
key: ticker
type: Bar
attributes:
  price: {type: double}
  size: {type: long}
formats:
  - name: bars
    time: {column: ts}
    map: {price: Last Price}
"""
ROWS = "2025-01-01T10:00:00Z,A,1.5,7\n2025-01-01T10:01:00Z,A,2.5,8\n"
GOOD = "ts,ticker,Last Price,size\n" + ROWS


def source(folder: Path, text: str = TEXT) -> Source:
    path = folder / "x.yaml"
    path.write_text(text)
    return load_source(path)


def parsed(source: Source, file: Path, file_date: date | None = None) -> tuple[list[dict], list[tuple[str, str]]]:
    """Good rows, and reason and text of the others."""
    task = Task(file.name, str(file), None, "f", "l", {}, file_date, "")
    whole = read_file(source, task)
    return whole.rows.to_pylist(), [(row["reason"], row["raw"]) for row in whole.bad.to_pylist()]


def lint(folder: Path, text: str, *files: Path) -> SourceReport:
    path = folder / "x.yaml"
    path.write_text(text)
    return lint_source(Home(folder, str(folder / "lake"), folder, folder), path, files)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Last Price", "LastPrice", "no column 'LastPrice', which attribute price is read from; .*'Last Price'?"),
        ("Last Price", "Lats Price", "no column 'Lats Price'.*'Last Price'"),
        ("Last Price", "nothing alike", "no column 'nothing alike', which attribute price"),
        ("{column: ts}", "{column: tz}", "no column 'tz', which the time is read from; .*'ts'"),
        ("price: Last Price", "price: Last Price, ticker: tickr", "no column 'tickr', which the key ticker.*'ticker'"),
        ("type: Bar", "type: {column: kind}", "no column 'kind', which the type is read from"),
        ("  size:", "  sise:", "no column 'sise', which attribute sise is read from.*'size'"),
        ("  size:", "  Size:", "no column 'Size', which attribute Size is read from.*'size'"),
    ],
)
def test_a_column_that_the_header_lacks_is_said(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = TEXT.replace(old, new, 1)
    file = tmp_path / "a.csv"
    file.write_text(GOOD)
    good, bad = parsed(source(tmp_path, text), file)
    assert good == [] and [reason for reason, _ in bad] == ["no_format"]
    report = lint(tmp_path, text, file)
    assert len(report.errors) == 1
    error = report.errors[0]
    assert re.search(said, bad[0][1]) and re.search(said, error.what), (bad, error)
    assert error.file == str(tmp_path / "x.yaml") and error.column is not None
    word = new.split(": ")[-1].strip(" }:") if "tickr" not in new else "tickr"
    if old.strip() not in ("size:", "type: Bar"):
        assert word in text.splitlines()[(error.line or 0) - 1]
        assert f"line {error.line}, column {error.column} of the definition" in bad[0][1]
    assert "Last Price" in (error.hint or "")


def test_an_optional_column_may_be_absent(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(GOOD.replace("Last Price", "other"))
    text = TEXT.replace("name: bars", "name: bars\n    optional: [Last Price]")
    good, bad = parsed(source(tmp_path, text), file)
    assert bad == [] and [row["price"] for row in good] == [None, None]
    report = lint(tmp_path, text, file)
    assert report.errors == () and "attribute price has no value in any of 2 rows" in report.warnings[0].what


def test_an_attribute_that_map_does_not_name_may_be_absent(tmp_path: Path) -> None:
    """It is what an attribute that was added later is, in all earlier files."""
    file = tmp_path / "a.csv"
    file.write_text(GOOD.replace(",size", ",other"))
    good, bad = parsed(source(tmp_path), file)
    assert bad == [] and [row["size"] for row in good] == [None, None]
    assert "attribute size has no value" in lint(tmp_path, TEXT, file).warnings[0].what


def test_a_column_of_unpivot_that_the_header_lacks_is_said(tmp_path: Path) -> None:
    text = TEXT.replace("    map: {price: Last Price}\n", "    unpivot: {columns: [R1, R2], into: price}\n")
    file = tmp_path / "a.csv"
    file.write_text("ts,R1,R3\n2025-01-01T10:00:00Z,1,2\n")
    good, bad = parsed(source(tmp_path, text), file)
    assert good == [] and "no column 'R2'" in bad[0][1] and "'R3'" in bad[0][1]
    good, bad = parsed(source(tmp_path, text.replace("name: bars", "optional: [R2]")), file)
    assert bad == [] and [(row["ticker"], row["price"]) for row in good] == [("R1", 1.0)]
    file.write_text("ts,R4\n2025-01-01T10:00:00Z,1\n")
    good, bad = parsed(source(tmp_path, text.replace("name: bars", "optional: [R1, R2]")), file)
    assert good == [] and "none of the columns of unpivot" in bad[0][1]


def test_a_column_that_is_read_and_stands_twice_is_said(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("ts,ticker,Last Price,size,size,x,x\n2025-01-01T10:00:00Z,A,1,2,3,4,5\n")
    good, bad = parsed(source(tmp_path), file)
    assert good == [] and "the column 'size' is given twice" in bad[0][1] and "'x'" not in bad[0][1]


def test_of_several_formats_each_says_why_it_does_not_fit(tmp_path: Path) -> None:
    text = TEXT + "  - name: other\n    header: [zeit]\n    time: {column: zeit}\n"
    file = tmp_path / "a.csv"
    file.write_text(GOOD.replace("Last Price", "Lst Price"))
    said = parsed(source(tmp_path, text), file)[1][0][1]
    assert "bars: no column 'Last Price'" in said and "other: no column 'zeit'" in said
    whats = [error.what for error in lint(tmp_path, text, file).errors]
    assert len(whats) == 2 and "bars" in whats[0] and "other" in whats[1]


def test_times_of_day_take_their_date_from_the_path(tmp_path: Path) -> None:
    text = TEXT.replace("{column: ts}", "{column: ts, format: '%H:%M:%S.%f', zone: Europe/Berlin}")
    text += "path: '(?P<date>\\d{8})'\n"
    file = tmp_path / "20250701.csv"
    file.write_text("ts,ticker,Last Price,size\n10:00:00.5,A,1,2\n00:30:00.000001,A,1,2\n10:00,A,1,2\n")
    good, bad = parsed(source(tmp_path, text), file, date(2025, 7, 1))
    assert [row["ts"] for row in good] == [
        datetime(2025, 7, 1, 8, 0, 0, 500_000, UTC), datetime(2025, 6, 30, 22, 30, 0, 1, UTC),
    ]  # fmt: skip
    assert [reason for reason, _ in bad] == ["bad_time"]
    good, bad = parsed(source(tmp_path, text), file)
    assert good == [] and {reason for reason, _ in bad} == {"bad_time"}


def test_the_page_lists_the_texts_of_a_boolean(tmp_path: Path) -> None:
    page = (PROJECT / "docs" / "sources.md").read_text()
    told = re.search(r"A boolean is (.*?), in any case", page, re.DOTALL)
    assert told is not None
    halves = [re.findall(r"`(\w+)`", half) for half in told[1].split(" or ")]
    text = "key: k\ntype: T\nattributes: {on: {type: boolean}}\nformats: [{time: {column: ts}}]\n"
    file = tmp_path / "a.csv"
    words = [*halves[0], *halves[1], halves[0][0].upper(), "on", "2", "-1", "yess"]
    file.write_text("ts,k,on\n" + "".join(f"2025-01-01,{at},{word}\n" for at, word in enumerate(words)))
    good, bad = parsed(source(tmp_path, text), file)
    assert [row["on"] for row in good] == [True] * 5 + [False] * 5 + [True]
    assert [reason for reason, _ in bad] == ["not_boolean"] * 4


def test_a_column_that_header_asks_for_is_said_with_the_one_most_like_it(tmp_path: Path) -> None:
    text = TEXT.replace("    time:", "    header: [ts, ticker, Last Price, size]\n    skip_lines: 1\n    time:")
    file = tmp_path / "a.csv"
    file.write_text("made by hand\n" + GOOD.replace("Last Price", "LastPrc").replace("size", "note"))
    said = "no column 'Last Price' (or is it 'LastPrc'?), 'size', which 'header' asks for"
    good, bad = parsed(source(tmp_path, text), file)
    assert good == [] and lint(tmp_path, text, file).errors
    assert [reason for reason, _ in bad] == ["no_format"]
    (error,) = lint(tmp_path, text, file).errors
    assert error.what == f"a.csv:2: bars: {said}"
    assert error.hint == (
        "The header has ts, ticker, LastPrc, note. Write the names as the file has them, in 'header' and 'map', or "
        "correct that line of the file."
    )


def test_landed_files_are_looked_at_to_the_end_of_a_block(tmp_path: Path) -> None:
    """Cells that cannot be used are told after the good rows of their block, lines that are no rows before them."""
    folder = tmp_path / "landing" / "x"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text(GOOD + "2025-01-01T10:02:00Z,A,dear,9\n2025-01-01T10:02:00Z,A\n")
    report = lint(tmp_path, TEXT)
    assert report.files == 1 and "2 rows of 4 would go to quarantine" in report.warnings[0].what


def test_a_cut_file_is_one_error_in_plain_words(tmp_path: Path) -> None:
    whole = gzip.compress(GOOD.encode() + b"".join(b"%d\n" % (at * at) for at in range(50_000)))
    (tmp_path / "a.csv.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b.csv.gz").write_bytes(whole[:-8] + bytes(8))
    report = lint(tmp_path, TEXT, tmp_path / "a.csv.gz", tmp_path / "b.csv.gz")
    assert [error.what.partition(" (")[0] for error in report.errors] == [
        "a.csv.gz: damaged: its compressed data end too early, as in a file that was copied only in part",
        "b.csv.gz: damaged: its compressed data are broken",
    ]
    assert not [one for one in report.warnings if "line 0" in one.what]


def test_lint_says_what_would_go_to_quarantine(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(GOOD + "2025-01-01T10:02:00Z,A,dear,9\n")
    report = lint(tmp_path, TEXT, file)
    assert report.errors == ()
    said = "1 row of 3 would go to quarantine: 1 not_a_number (price), such as line 4: 'dear'"
    assert said in report.warnings[0].what
    report = lint(tmp_path, TEXT.replace("size: {type: long}", "size: {type: timestamp}"), file)
    assert "3 rows of 3 would go to quarantine: 2 bad_time (size)" in report.errors[0].what
    file.write_text(GOOD + "2025-01-01T10:02:00Z,A\n")
    cells = GOOD.splitlines()[0].count(",") + 1
    said = "1 with too few or too many cells, such as line 4, which has 2 cells where the header has"
    assert f"{said} {cells}" in lint(tmp_path, TEXT, file).warnings[0].what


def test_lint_looks_at_landed_files_and_what_is_expected_of_them(tmp_path: Path) -> None:
    text = TEXT.replace("name: bars", "glob: 'x_*'") + "path: 'x_(?P<date>\\d{8})'\nexpect: ['y_{date:%Y%m%d}.csv']\n"
    assert lint(tmp_path, text) == SourceReport((), (), 0)
    folder = tmp_path / "landing" / "x"
    folder.mkdir(parents=True)
    (folder / "x_20250101.csv").write_text(GOOD)
    report = lint(tmp_path, text)
    assert report.errors == () and ["names none of the 1 landed file" in one.what for one in report.warnings] == [True]
    assert lint(tmp_path, text.replace("y_", "x_")).warnings == ()
    (folder / "x_20251301.csv").write_text(GOOD)
    (folder / "z.csv").write_text(GOOD)
    (folder / "x_20250102.csv").write_text("")
    with zipfile.ZipFile(folder / "x_20250103.zip", "w") as archive:
        archive.writestr("x_a.csv", GOOD.replace("Last Price", "last"))
    whats = [error.what for error in lint(tmp_path, text).errors]
    for said in ("'20251301' in its path", "z.csv: no format's glob fits", "x_20250102.csv", "0103.zip!x_a.csv"):
        assert any(said in what for what in whats), (said, whats)


@pytest.mark.slow
def test_lint_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stock = PROJECT / "data" / "stock" / "us_equity_minute_trade_20131007.csv.gz"
    text = (PROJECT / "dags" / "config" / "sources" / "stock.yaml").read_text()
    path = tmp_path / "stock.yaml"
    path.write_text(text)
    assert main(["lint", str(path), "--on", str(stock)]) == 0
    path.write_text(text.replace("header: [ticker, ts, open, high, low, close, volume]", "map: {close: clse}"))
    capsys.readouterr()
    assert main(["lint", str(path), "--on", str(stock)]) == 3
    said = capsys.readouterr().out
    line = path.read_text().splitlines().index("    map: {close: clse}") + 1
    assert f"stock.yaml:{line}:11: {stock.name}: bars: no column 'clse'" in said and "'close'" in said
    assert main(["lint", str(path), "--on", str(tmp_path / "no.csv")]) == 4
    assert main(["lint", str(tmp_path / "no.yaml")]) == 2


PATTERN = """\
---
source: stock
description: a fall of one, and a rise of another
---
PATTERN SEQ(Bar a, Bar b)
WHERE a.ticker = 'BACC'
  AND b.ticker IN {IBM, SPY}
  AND b.close > a.close
WITHIN 5 min
"""


@pytest.mark.slow
def test_keys_of_a_pattern_are_looked_up_where_events_are_at_hand(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stock = PROJECT / "data" / "stock" / "us_equity_minute_trade_20131007.csv.gz"
    config = tmp_path / "config"
    for folder in ("sources", "patterns", "models"):
        (config / folder).mkdir(parents=True)
    (config / "sources" / "stock.yaml").write_text((PROJECT / "dags" / "config" / "sources" / "stock.yaml").read_text())
    pattern = config / "patterns" / "two.sase"
    pattern.write_text(PATTERN)
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(config))

    def said(*words: str) -> str:
        capsys.readouterr()
        assert main(list(words)) == 0
        return capsys.readouterr().out

    assert "0 errors, 0 warnings" in said("lint", str(pattern))
    out = said("lint", str(pattern), "--on", str(stock))
    assert f"two.sase:6:18: no event of {stock.name} has the ticker 'BACC'" in out and "'BAC'" in out
    assert "0 errors, 1 warning" in out
    empty = tmp_path / "empty.csv"
    empty.write_text("ticker,ts\n")
    assert "0 errors, 0 warnings" in said("lint", str(pattern), "--on", str(empty))

    def rate(key: str, events: int, kind: str = "Bar") -> dict:
        return {"source": "stock", "day": date(2013, 10, 7), "type": kind, "key": key, "events": events}

    assert "BACC" not in said("status")
    ops.append(home, "rates", [rate("IBM", 5), rate("SPY", 5), rate("BACC", 0), rate("AIG", 5)], "r")
    ops.append(home, "rates", [rate("BACC", 7) | {"source": "other"}], "r")
    out = said("lint", str(pattern))
    assert "two.sase:6:18: no event of stock in the lake has the ticker 'BACC'" in out and "0 errors, 1 warn" in out
    (line,) = [line for line in said("status").splitlines() if "BACC" in line]
    assert line.startswith("pattern/two: no event of stock in the lake has the ticker 'BACC' (line 6). ")
    ops.append(home, "rates", [rate("BACC", 1)], "s")
    assert "0 errors, 0 warnings" in said("lint", str(pattern)) and "BACC" not in said("status")
    pattern.write_text(PATTERN.replace("Bar a", "Barr a"))
    out = said("lint", str(pattern))
    # Said once, although no event in the lake has it either.
    assert "source has no events of type Barr" in out and "0 errors, 1 warning" in out


@pytest.mark.parametrize("folder", ["sources", "models"])
def test_shipped_sources_and_models_have_nothing_to_say(
    folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CHAINLAKE_HOME", str(tmp_path))
    files = sorted(str(path) for path in (PROJECT / "dags" / "config" / folder).glob("*.yaml"))
    assert main(["lint", *files]) == 0
    assert "0 errors, 0 warnings" in capsys.readouterr().out


def test_a_model_that_is_wrong_is_linted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (PROJECT / "dags" / "config" / "models" / "bac_beta.yaml").read_text()
    path = tmp_path / "m.yaml"
    for old, new, said in (
        ("name: return, expression: Log(close / open)", "of: clse", "no numeric column 'clse'"),
        (
            "expression: Log(close / open)",
            "expression: Log(clse / open)",
            "no attribute clse (key response.expression)",
        ),
        ("AND 959", "AND 'x'", "a number and a string have no order"),
        ("America/New_York", "New_York", "there is no zone 'New_York'"),
    ):
        path.write_text(text.replace(old, new, 1))
        assert main(["lint", str(path)]) == 3
        assert said in capsys.readouterr().out


def tarred(content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("a.csv")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (bz2.compress(GOOD.encode()), "it is compressed with bzip2; only text is read"),
        (lzma.compress(GOOD.encode()), "it is compressed with xz; only text is read"),
        (b"PAR1\x15\x04 and so on PAR1", "it is a Parquet file; only text is read"),
        (tarred(GOOD.encode()), "it is a tar archive; only text is read"),
        (GOOD.replace("\n", "\r").encode(), "its lines end in lone carriage returns"),
        # A name says nothing of the content.
        (b"other,columns\n1,2\n", "no column"),
    ],
)
def test_what_is_no_text_is_called_by_its_name(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "a.csv.bz2"
    file.write_bytes(content)
    rows, bad = parsed(source(tmp_path), file)
    assert rows == [] and [reason for reason, _ in bad] == ["no_format"]
    whole = read_file(source(tmp_path), Task(file.name, str(file), None, "f", "l", {}, None, ""))
    assert said in whole.counts.reason
    errors = lint(tmp_path, TEXT, file).errors
    assert said in errors[0].what and "a.csv.bz2" in errors[0].what
    for error in errors:
        # Ingest and lint say the same of one file, in their own order.
        assert error.what.removeprefix(f"{file.name}: ") in whole.counts.reason or error.line is not None
    good = tmp_path / "good.csv.bz2"
    good.write_text(GOOD)
    assert len(parsed(source(tmp_path), good)[0]) == 2
