"""``chainlake match`` on small files: what a column holds, what is said of it, and files that are refused."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from chainlake.cep.library import match
from chainlake.cli.main import main
from chainlake.errors import InputError

CASES = Path(__file__).parents[1] / "cases"
TABLE = json.loads((CASES / "match-cases.json").read_text(encoding="utf-8"))


def files_of(case: dict[str, Any], folder: Path) -> list[str]:
    """The case's files: one that lies among the cases, or written to ``folder`` byte by byte."""
    if isinstance(case["files"], str):
        return [str(CASES / "faults" / case["files"])]
    for name, content in case["files"].items():
        (folder / name).write_bytes(content.encode("latin-1"))
    return [str(folder / name) for name in case["files"]]


def found_in(out: str) -> list[list[Any]]:
    return sorted(list(json.loads(line).values()) for line in out.splitlines())


@pytest.mark.few(60)
@pytest.mark.parametrize("case", TABLE, ids=[case["name"] for case in TABLE])
def test_case(case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    code = main(["match", case["query"], *files_of(case, tmp_path), *case["options"]])
    out, err = capsys.readouterr()
    # That nothing was found is said, too; the cases are about what the reader says of cells.
    err = "".join(line for line in err.splitlines(True) if not line.startswith("note: 0 matches in "))
    assert (code, found_in(out)) == (case["code"], case["matches"]), err
    assert bool(err) == bool(case["says"]), err
    at = 0
    for words in case["says"]:
        assert words in err[at:], (words, err)
        at = err.index(words, at) + len(words)


@pytest.mark.parametrize("size", [200_000, 2_000_000])
def test_a_long_line_is_read(size: int, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "v.csv"
    file.write_text(f"id,type,ts,x\n1,A,1,{'x' * size}\n2,A,2,y\n")
    assert main(["match", "PATTERN A a WHERE a.x != 'y' WITHIN 5 s", str(file)]) == 0
    assert found_in(capsys.readouterr().out) == [[1]]


def test_json_nested_without_end_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "v.jsonl"
    file.write_text('{"type": "A", "ts": 1, "x": ' + "[" * 100_000 + "\n")
    assert main(["match", "PATTERN A a WITHIN 5 s", str(file)]) == 4
    assert f"{file}:1: this line is nested too deep" in capsys.readouterr().err


@pytest.mark.few(20)
@pytest.mark.parametrize("further", ["7", "007", "?", "NA", "TRUE", "", "2024-03-01"])
@pytest.mark.parametrize(
    "cells", [("9", "10"), ("1.0", "1.00"), ("7", "07"), ("NA", "NA"), ("TRUE", "true"), ("1", "x")]
)
@pytest.mark.parametrize("op", ["=", "<", "!="])
def test_a_further_row_changes_nothing_unsaid(
    cells: tuple[str, str], further: str, op: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """Whether two rows match hangs on a third one only where a note names its cell."""
    head, query = "id,type,ts,x\n", f"PATTERN SEQ(A a, B b) WHERE a.x {op} b.x WITHIN 5 s"
    rows = f"1,A,1,{cells[0]}\n2,B,2,{cells[1]}\n"
    seen = []
    for content in (head + rows, f"{head}{rows}4,A,4,{further}\n"):
        file = tmp_path / "v.csv"
        file.write_text(content)
        assert main(["match", query, str(file)]) == 0
        out, err = capsys.readouterr()
        seen.append(([1, 2] in found_in(out), err))
    assert seen[0][0] == seen[1][0] or "is not a number (key x)" in seen[1][1]


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ([2**53 + 1, 2**53, 0.5], "x holds 9007199254740993, which cannot be kept exactly alongside doubles"),
        ([0.5, True], "the attribute x holds values of different kinds"),
        ([True, 1], "the attribute x holds values of different kinds"),
        ([1, "1"], "the attribute x holds values of different kinds"),
        ([date(2024, 3, 1), datetime(2024, 3, 1)], "the attribute x holds values of different kinds"),
        ([datetime(2024, 3, 1), date(2024, 3, 1)], "the attribute x holds values of different kinds"),
    ],
)
def test_values_of_dicts_are_of_one_kind(values: list[Any], what: str) -> None:
    events = [{"id": n, "type": "A", "ts": n, "attrs": {"x": value}} for n, value in enumerate(values)]
    with pytest.raises(InputError, match=what):
        match("PATTERN SEQ(A a, A b) WHERE a.x = b.x WITHIN 9", events)


def test_whole_numbers_of_dicts_stay_exact() -> None:
    events = [{"id": n, "type": "A", "ts": n, "attrs": {"x": x}} for n, x in enumerate([2**53 + 1, 2**53, 2**53 + 1])]
    assert list(match("PATTERN SEQ(A a, A b) WHERE a.x = b.x WITHIN 9", events)) == [{"a": 0, "b": 2}]
