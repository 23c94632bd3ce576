"""``chainlake match --source``: files are read and resolved by the rules of a source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cep.test_match_command import QUERY, run, write

HEAD = "ticker,ts,open,high,low,close,volume\n"
RISE = "PATTERN SEQ(Bar a, Bar b) WHERE a.close < b.close WITHIN 5 min"


def bars(*rows: tuple[int, float]) -> str:
    """Bars of SPY: minute after 09:30, close."""
    return HEAD + "".join(f"SPY,2013-10-07 09:{30 + at}:00,1,9,1,{close},5\n" for at, close in rows)


def test_a_file_of_another_source_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    code, found, err = run(capsys, QUERY, write(tmp_path, "csv"), "--source", "traffic")
    assert (code, found) == (4, []) and "cannot be read as traffic: " in err


def test_a_source_reads_its_own_files(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "us_equity_minute_trade_20131007.csv"
    file.write_text(
        "ticker,ts,open,high,low,close,volume\n"
        "SPY,2013-10-07 09:30:00,1,1,1,1,5\nSPY,2013-10-07 09:31:00,1,2,1,2,5\nSPY,2013-10-07 09:32:00,x,2,1,2,5\n"
    )
    query = "PATTERN SEQ(Bar a, Bar b) WHERE a.close < b.close AND b.ticker = SPY WITHIN 5 min"
    code, found, err = run(capsys, query, file, "--source", "stock")
    assert (code, len(found)) == (0, 1) and "1 row cannot be read as stock; left out: 1 not_a_number" in err


def test_a_source_resolves_what_lands_twice(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Events are called by the place of their row; overlaps count once, of conflicts the first row stays."""
    first, second = (tmp_path / f"us_equity_minute_trade_2013100{day}.csv" for day in (7, 8))
    first.write_text(bars((0, 1), (1, 2)))
    second.write_text(bars((1, 2), (0, 7), (2, 3)))
    code, found, err = run(capsys, RISE, second, first, first, "--source", "stock")
    names = {1: f"{first.name}:2", 2: f"{first.name}:3", 3: f"{second.name}:4"}
    expected = [{"a": names[a], "b": names[b]} for a, b in ((1, 2), (1, 3), (2, 3))]
    assert code == 0 and sorted(found, key=str) == expected
    assert err == "left out by the rules of stock: 1 duplicate, 1 conflict\n"


def test_a_source_replaces_a_file_by_its_revision(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    first, second = (tmp_path / f"us_equity_minute_trade_20131007{tail}.csv" for tail in ("", "_r2"))
    first.write_text(bars((0, 1), (1, 2)))
    second.write_text(bars((3, 1), (4, 2)))
    code, found, err = run(capsys, RISE, first, second, "--source", "stock")
    assert (code, found) == (0, [{"a": f"{second.name}:2", "b": f"{second.name}:3"}])
    assert err == "left out by the rules of stock: 2 superseded rows\n"
