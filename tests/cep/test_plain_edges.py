"""Files of events at their edges: marks of the byte order, long names, numbers in lists that doubles do not keep."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainlake.cep.plain_files.read import read_events
from chainlake.cli.main import main
from chainlake.errors import InputError

MARK = "\ufeff"
BIG = 2**53 + 1


@pytest.mark.parametrize("marks", [MARK, MARK * 2])
def test_marks_of_files_that_were_put_together_are_no_part_of_a_cell(tmp_path: Path, marks: str) -> None:
    """The type of the event that follows one is that of the others."""
    day = [f"A,2025-01-01T10:0{minute}:00,{minute}\n" for minute in range(3)]
    file = tmp_path / "x.csv"
    file.write_text(f"{marks}type,ts,x\n{day[0]}{marks}{day[1]}{day[2]}", encoding="utf-8")
    found = read_events([file]).table
    assert found["type"].to_pylist() == ["A"] * 3 and found["x"].to_pylist() == [0, 1, 2]
    lines = [json.dumps({"type": "A", "ts": f"2025-01-01T10:0{minute}:00"}) for minute in range(2)]
    other = tmp_path / "x.jsonl"
    other.write_text(f"{MARK}{lines[0]}\n{MARK}{lines[1]}\n", encoding="utf-8")
    assert read_events([other]).table["type"].to_pylist() == ["A", "A"]


def test_a_name_in_a_header_of_any_length_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.csv"
    file.write_text(f"type,ts,{'y' * 200_000}\nA,2025-01-01T10:00:00,1\n")
    assert main(["match", "PATTERN A a WITHIN 1 s", str(file)]) == 4
    assert "the file is not delimited text: field larger than field limit" in capsys.readouterr().err


@pytest.mark.parametrize("text", [str(BIG), f"-{BIG}", "1e400", "-1e400"])
def test_numbers_in_lists_of_json_are_kept_exactly_or_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.jsonl"
    whole = f'{{"type": "A", "ts": "2025-01-01T10:00:00", "x": [{2**53}, 1.5e300, null]}}\n'
    file.write_text(whole + "\n" + whole.replace("1.5e300", text))
    with pytest.raises(InputError, match=f"x.jsonl:3: '{text}' is too large a number to be kept exactly"):
        read_events([file])
    file.write_text(whole)
    assert read_events([file]).table["x"].to_pylist()[0][:2] == [2.0**53, 1.5e300]


def test_whole_numbers_in_lists_of_parquet_are_kept_exactly_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.parquet"
    times = pa.array([1_735_725_600, 1_735_725_660])
    pq.write_table(pa.table({"type": ["A", "A"], "ts": times, "x": [[None, 1], [2, BIG]]}), file)
    assert main(["match", "PATTERN SEQ(A a, A b) WHERE MAX(a.x) = MAX(b.x) WITHIN 1 h", str(file)]) == 4
    assert f"x holds {BIG}, which cannot be kept exactly" in capsys.readouterr().err
