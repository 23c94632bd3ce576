"""Functions of pairs on the command line: code from the folder of the configuration, and what is said of calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainlake.cli.main import main

CSV = "id,type,ts,x,k\n1,A,2025-01-01T00:00:01Z,1.5,p\n2,B,2025-01-01T00:00:03Z,2.0,p\n3,B,2025-01-01T00:00:04Z,9,p\n"
PATTERN = """---
functions:
  far: {call: 'numbers:far', cost: 3}
---
PATTERN SEQ(A a, B b)
WHERE a.k = b.k
  AND far(a.x, b.x) > 1
WITHIN 5 s
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CHAINLAKE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(tmp_path / "config"))
    (tmp_path / "config" / "functions").mkdir(parents=True)
    (tmp_path / "config" / "functions" / "numbers.py").write_text("def far(a, b):\n    return abs(a - b)\n")
    (tmp_path / "events.csv").write_text(CSV)
    (tmp_path / "p.sase").write_text(PATTERN)
    return tmp_path


def test_match_calls_the_function_and_counts_pairs(files: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["match", "--stats", str(files / "p.sase"), str(files / "events.csv")]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line) for line in out.splitlines()] == [{"a": 1, "b": 3}]
    told = json.loads(err.splitlines()[-1])
    assert (told["pair_evals"], told["pair_memo_hits"], told["matches"]) == (2, 0, 1)
    assert told["backend"] == ["numpy: far is called between the steps, with many pairs at a time"]


def test_lint_and_explain_find_the_code(files: Path, capsys: pytest.CaptureFixture) -> None:
    pattern = files / "p.sase"
    assert main(["lint", str(pattern)]) == 0
    assert main(["explain", str(pattern)]) == 0
    assert "calls     far of a and b, about 3 ms for 1,000" in capsys.readouterr().out
    pattern.write_text(PATTERN.replace("numbers:far", "numbers:fra"))
    assert main(["lint", str(pattern)]) == 3
    said = capsys.readouterr().out
    assert "p.sase:3:3: " in said and "defines no function fra" in said and "Did you mean far?" in said
    assert main(["match", str(pattern), str(files / "events.csv")]) == 3
    assert "defines no function fra" in capsys.readouterr().err


def test_a_failing_function_ends_the_verb_with_an_example(files: Path, capsys: pytest.CaptureFixture) -> None:
    (files / "config" / "functions" / "numbers.py").write_text("def far(a, b):\n    return a[:1]\n")
    assert main(["match", str(files / "p.sase"), str(files / "events.csv")]) == 3
    assert "p: far was called with 2 pairs, such as far(1.5, 2.0), and returned an array of shape (1,)" in (
        capsys.readouterr().err
    )
