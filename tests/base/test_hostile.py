"""The command line with arguments that nobody means: one sentence, the right exit code, never a stack trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainlake.cli.main import main
from chainlake.paths import Home

DAY = ("2024-01-01", "2024-01-02")
STEPS = ("ingest", "detect", "monitor", "validate")


@pytest.fixture
def place(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own with a folder that looks like a file, an empty file and noise."""
    folder = tmp_path / "here"
    (folder / "folder.csv").mkdir(parents=True)
    (folder / "folder.sase").mkdir()
    (folder / "empty.csv").touch()
    (folder / "empty.sase").touch()
    (folder / "noise.csv").write_bytes(bytes(range(128, 256)) * 4)
    (folder / "noise.sase").write_bytes(bytes(range(128, 256)) * 4)
    monkeypatch.chdir(folder)
    return folder


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Exit code and what was said on stderr, by lint on stdout; argparse ends by itself."""
    try:
        code = main(list(words))
    except SystemExit as ended:
        code = int(ended.code or 0)
    captured = capsys.readouterr()
    said = captured.out if words[0] == "lint" else captured.err
    assert "Traceback" not in said and "unexpected" not in said
    return code, said


@pytest.mark.parametrize("verb", STEPS)
def test_steps(verb: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("", "nix", "../sources/stock", "stock.yaml"):
        code, said = run(capsys, verb, name, *DAY)
        assert code == 2 and f"there is no source '{name}'" in said
    for days in (reversed(DAY), (DAY[0], DAY[0]), ("", ""), ("x", "y"), ("20240101", "20240102")):
        assert run(capsys, verb, "stock", *days)[0] == 2
    assert run(capsys, verb, "stock")[0] == 2


def test_ingest_of_days_that_have_not_been(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = run(capsys, "ingest", "stock", "2024-01-01", "9999-12-31")
    assert code == 2 and "ends in the future" in said


@pytest.mark.parametrize("verb", ["ingest", "detect", "monitor"])
def test_results_that_cannot_be_written(verb: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for result in ("folder.csv", "no/such/folder.json"):
        code, said = run(capsys, verb, "stock", *DAY, "--result", result)
        assert code == 2 and "the result cannot be written there" in said


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["sql", ""], 2, "the statement is empty"),
        (["sql", " \n"], 2, "the statement is empty"),
        (["sql", "DROP TABLE x"], 2, "this only reads"),
        (["sql", "SELECT 1; SELECT 2"], 2, "only one statement is possible at a time"),
        (["sql", "SELECT * FROM matches.nix"], 2, "there is no table matches.nix"),
        (["sql", "SELECT 'a'::int"], 2, "Could not convert"),
        (["status", "2024-01-01"], 2, "FROM needs TO"),
        (["status", "--definition", ""], 2, "there is no definition ''"),
        (["lint", ""], 2, "this is not a file"),
        (["lint", "nix.sase"], 2, "there is no such file"),
        (["lint", "folder.sase"], 2, "this is not a file"),
        (["lint", "noise.sase"], 3, "not UTF-8"),
        (["lint", "empty.sase"], 3, ""),
        (["explain", ""], 2, "the pattern is empty"),
        (["explain", "folder.sase"], 2, "the pattern cannot be read"),
        (["explain", "noise.sase"], 3, "not UTF-8"),
        (["explain", "empty.sase"], 3, "a query begins with PATTERN"),
        (["match", "PATTERN A a WITHIN 1 s", ""], 4, "this is a folder"),
        (["match", "PATTERN A a WITHIN 1 s", "folder.csv"], 4, "this is a folder"),
        (["match", "PATTERN A a WITHIN 1 s", "noise.csv"], 4, "not UTF-8"),
        (["match", "PATTERN A a WITHIN 1 s", "empty.csv"], 0, ""),
        (["generate", "stock", "--from", "", "--out", "o"], 2, "'' is not a day"),
        (["generate", "stock", "--from", "2024-01-01", "--out", "o", "--events-per-day", "9" * 30], 2, "are more than"),
        (["generate", "stock", "--from", "0001-01-01", "--out", "o"], 2, "must be between"),
    ],
)
def test_files_and_texts(
    words: list[str], code: int, said: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run(capsys, *words)
    assert found[0] == code and said in found[1]


@pytest.mark.few(1)
@pytest.mark.parametrize("below", ["", "/deeper"])
def test_a_home_that_is_a_file(
    below: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINLAKE_HOME", f"{place}/empty.csv{below}")
    for words in (["status"], ["sql"], ["ingest", "stock", *DAY], ["detect", "stock", *DAY]):
        code, said = run(capsys, *words)
        assert code == 5 and f"{place}/empty.csv is a file" in said


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["a#b", "a?b", "[a]", "a^b", "a|b", "a\\b", "a\nb", "a%41"])
def test_a_lake_in_a_folder_where_no_table_can_lie(
    name: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables would be written somewhere else, or not be found again."""
    monkeypatch.setenv("CHAINLAKE_HOME", f"{place}/{name}")
    monkeypatch.delenv("CHAINLAKE_LAKE", raising=False)
    for words in (["status"], ["check"], ["ingest", "stock", *DAY]):
        code, said = run(capsys, *words)
        assert code == 5 and "the lake cannot be in" in said
    # What needs no lake does not ask for its place.
    assert run(capsys, "match", "PATTERN A a WITHIN 1 s", "empty.csv")[0] == 0
