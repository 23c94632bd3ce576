"""``lint`` for all kinds of definitions, by name or by path: findings, tests, JSON and exit codes."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from chainlake.cli.main import main
from chainlake.lake.records import ops
from chainlake.paths import PROJECT, Home

TRADES = """id,ts,ticker,open,close,volume
1,2025-01-01 10:00,X,10.0,9.0,100
2,2025-01-01 10:01,X,9.0,10.0,150
3,2025-01-01 10:02,Y,9.0,10.0,150
"""


def lint(capsys: pytest.CaptureFixture[str], *args: str | Path) -> tuple[int, str]:
    code = main(["lint", *map(str, args)])
    return code, capsys.readouterr().out


def test_landed_files_are_counted_apart_and_a_definition_is_named_from_here(
    project: Path, home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = home.landing("stock")
    folder.mkdir(parents=True)
    (folder / "us_equity_minute_trade_20131007.csv").write_text("Ticker,ts,open,high,low,close,volume\nA,1,1,1,1,1,1\n")
    monkeypatch.chdir(project)
    code, said = lint(capsys, "stock", "shakeout")
    first, *_, last = said.splitlines()
    assert code == 3 and first.startswith("error: sources/stock.yaml: us_equity_minute_trade_20131007.csv:1: bars: ")
    assert "'ticker' (or is it 'Ticker'?)" in first and last == "2 definitions and 1 landed file: 1 error, 0 warnings"
    main(["lint", "stock", "shakeout", "--json"])
    counts = json.loads(capsys.readouterr().out)
    assert (counts["files"], counts["landed_files"]) == (2, 1)


def with_tests(project: Path, tests: str) -> Path:
    """The pattern ``shakeout`` with ``tests`` in its front matter, in place of its own, which are its last key."""
    file = project / "patterns" / "shakeout.sase"
    head, front, query = file.read_text().split("---\n", 2)
    front = front.partition("tests:\n")[0]
    file.write_text(f"{head}---\n{front}tests:\n{tests}---\n{query}")
    return file


def inline(matches: str, events: str = TRADES) -> str:
    rows = "".join(f"      {line}\n" for line in events.splitlines())
    return f"  - name: one\n    events: |\n{rows}    matches: {matches}\n"


def test_names_and_paths_and_all(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = lint(
        capsys, "shakeout", "stock", "pattern/shakeout", "i5n_speed_profile", project / "models" / "bac_beta.yaml"
    )
    assert one == (0, "5 definitions: 0 errors, 0 warnings\n")
    assert lint(capsys) == (0, "6 definitions: 0 errors, 0 warnings\n")
    code, said = lint(capsys, "shakout")
    assert code == 2 and "there is no source or pattern or model 'shakout'" in said
    assert "Did you mean shakeout?" in said
    code, said = lint(capsys, "pattern/stock")
    assert code == 2 and "there is no pattern 'stock'" in said
    (project / "patterns" / "stock.sase").write_text((project / "patterns" / "shakeout.sase").read_text())
    code, said = lint(capsys, "stock")
    assert code == 2 and "Write source/stock or pattern/stock." in said


@pytest.mark.parametrize("folder", ["models", "elsewhere"])
@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (("source: traffic", ""), "'source' is missing"),
        (("eps: 6", "epss: 6"), "unknown key 'epss'"),
        (("  - polynomial", "\t- polynomial"), "the indentation of this line contains a tab"),
        (("response: speed", "response: sped"), "no numeric column 'sped'"),
        (("nodes: [1205168", "nodse: [1205168"), "unknown key 'nodse'"),
    ],
)
def test_a_models_file_is_spoken_of_as_a_model(
    folder: str, edit: tuple[str, str], told: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is wrong in it, and wherever it lies: no word of sources' keys, or of patterns."""
    text = (project / "models" / "i5n_speed_profile.yaml").read_text()
    assert edit[0] in text
    file = project / folder / "mine.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text.replace(*edit))
    code, said = lint(capsys, file)
    assert code == 3 and told in said and f"{file}:" in said
    assert "PATTERN" not in said and "attributes" not in said


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ("RANK BY MAX(b.close) TOP 2 PER ALL", "has no WITHIN"),
        ("WITHIN 1 h RANK BY MAX(b.close) TOP 2 PER ALL NON OVERLAPPING", "keeps every ranked match of a period"),
    ],
)
def test_what_a_lake_refuses(rest: str, told: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "patterns" / "ever.sase"
    file.write_text(f"---\nsource: stock\n---\nPATTERN SEQ(Bar a, Bar b) WHERE a.ticker = b.ticker {rest}\n")
    code, said = lint(capsys, file)
    assert code == 3 and f"ever {told}" in said


def test_a_file_of_no_kind(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "notes.txt"
    file.write_text("nothing")
    code, said = lint(capsys, file)
    assert code == 2 and "ends in .sase" in said


def test_a_node_that_no_event_has(project: Path, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the file at hand, and of the lake: each place that names it, with its line and column."""
    file = project / "models" / "i5n_speed_profile.yaml"
    file.write_text(file.read_text().replace("1205175, ", "12051750, "))
    landed = PROJECT / "data" / "traffic" / "d12_station_5min_2025_10_01.csv.gz"
    code, said = lint(capsys, "i5n_speed_profile", "--on", landed)
    assert code == 0 and "1 warning" in said
    row = next(n for n, line in enumerate(file.read_text().splitlines(), 1) if line.startswith("nodes:"))
    assert f"i5n_speed_profile.yaml:{row}:18: no event of {landed.name} has the detector '12051750'" in said
    assert "Did you mean '1205175'?" in said

    keys = [
        {"source": "stock", "day": date(2013, 10, 7), "type": "Bar", "key": key, "events": 5} for key in ("BAC", "IBM")
    ]
    ops.append(home, "rates", keys, "r")
    code, said = lint(capsys, "bac_beta", "--strict")
    assert code == 1 and "no event of stock in the lake has the ticker 'SPY'" in said and "1 warning" in said
    ops.append(home, "rates", [{**keys[0], "key": "SPY"}], "r2")
    assert lint(capsys, "bac_beta", "--strict") == (0, "1 definition: 0 errors, 0 warnings\n")


def test_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "models" / "bac_beta.yaml"
    file.write_text(file.read_text().replace("eps: 0.3", "eps: none"))
    code, said = lint(capsys, "--json")
    found = json.loads(said)
    assert code == 3 and (found["files"], found["errors"], found["warnings"], found["tests"]) == (6, 1, 0, 0)
    (one,) = found["findings"]
    assert one["level"] == "error" and one["file"] == str(file) and one["key"] == "eps"
    assert file.read_text().splitlines()[one["line"] - 1] == "eps: none" and one["column"] == 1


def test_the_tests_of_a_pattern(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_tests(project, inline("[{down: 1, back: 2}]"))
    assert lint(capsys, "shakeout", "--test") == (0, "1 definition: 0 errors, 0 warnings, 1 test run\n")
    assert lint(capsys, "shakeout") == (0, "1 definition: 0 errors, 0 warnings\n")


@pytest.mark.parametrize(
    ("test", "told"),
    [
        (inline("[{down: 1, back: 3}, {down: 1, back: 2}]"), ["the match down = 1, back = 3 is not found"]),
        (inline("[]"), ["the match down = 1, back = 2 is found but not listed"]),
        (inline("[{down: 1, back: 2}, {down: 1, back: 2}]"), ["the match down = 1, back = 2 is not found"]),
        (inline("[{down: 1}]"), ["the match down = 1 is not found", "back = 2 is found but not listed"]),
        (
            inline("[]", "id,ts,ticker,open,close,volume\n1,2025-01-01 10:00,X,1o,9,1\n"),
            ["'1o' is not a number (line 2"],
        ),
        (inline("[]", "id,ts,ticker,open,close\n1,2025-01-01 10:00,X,10,9\n"), ["no attribute volume"]),
        ("  - events: none.csv\n    matches: []\n", ["none.csv: there is no such file"]),
    ],
)
def test_a_test_that_fails(test: str, told: list[str], project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = with_tests(project, test)
    code, said = lint(capsys, "shakeout", "--test")
    assert code == 1 and f"{len(told)} error" in said
    row = next(n for n, line in enumerate(file.read_text().splitlines(), 1) if line == "tests:") + 1
    for words in told:
        assert words in said and f"shakeout.sase:{row}:5: test " in said


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("  - event: x\n    matches: []\n", "unknown key event in a test"),
        ("  - matches: []\n", "the test lacks events"),
        ("  - events: [1]\n    matches: []\n", "events must be a string"),
        ("  - events: a.csv\n    matches: {a: 1}\n", "matches must be a list"),
        ("  - events: a.csv\n    matches: [1]\n", "a match must be a map"),
        ("  - events: a.csv\n    matches: [{a: {b: 1}}]\n", "a must be an id"),
        ("  - 1\n", "a test must be a map"),
    ],
)
def test_a_test_of_another_form(test: str, told: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_tests(project, test)
    code, said = lint(capsys, "shakeout")
    assert code == 3 and told in said


def test_events_beside_the_pattern_have_the_types_of_the_source(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys are texts even where all of them are numbers, as in the events of the source."""
    (project / "patterns" / "slow.csv").write_text(
        "id,ts,detector,speed\na,2025-10-01T07:00Z,1205168,20\nb,2025-10-01T07:05Z,1205168,10\n"
    )
    (project / "patterns" / "slow.sase").write_text(
        "---\nsource: traffic\ndescription: slower\ntests:\n  - events: slow.csv\n"
        "    matches:\n      - {one: a, other: b, fell: 10}\n---\n"
        "PATTERN SEQ(Reading one, Reading other)\nWHERE one.detector = '1205168'\n  AND other.detector = one.detector\n"
        "  AND other.speed < one.speed\nWITHIN 10 min\nMEASURES one.speed - other.speed AS fell\n"
    )
    assert lint(capsys, "slow", "--test") == (0, "1 definition: 0 errors, 0 warnings, 1 test run\n")


def test_tests_change_no_match(project: Path) -> None:
    """An edit of the tests must not make a lake compute all days anew."""
    from chainlake.cep.pattern import compile_pattern

    file = project / "patterns" / "shakeout.sase"
    before = compile_pattern(file.read_text()).definition_hash
    assert compile_pattern(with_tests(project, inline("[]")).read_text()).definition_hash == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tune", "i5n_speed", "2025-10-01", "2025-10-02"], "Did you mean i5n_speed_profile?"),
        (["detect", "stok", "2013-10-07", "2013-10-08"], "Did you mean stock?"),
        (["match", "shakout", "a.csv"], "Did you mean shakeout?"),
        (["explain", "shakout"], "Did you mean shakeout?"),
        (["status", "--definition", "pattern/shakout"], "Did you mean pattern/shakeout?"),
        (["match", "shakeout", "a.csv", "--source", "stok"], "Did you mean stock?"),
        (["plan", "2013-10-07", "2013-10-08", "--patterns", "shakout"], "Did you mean shakeout?"),
    ],
)
def test_every_verb_says_which_name_was_meant(
    words: list[str], told: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["detect", "stock", "2013-10-07", "2013-10-08", "--pattern", "patterns/shakout.sase"], "shakout"),
        (["monitor", "stock", "2013-10-07", "2013-10-08", "--model", "models/bac_bta.yaml"], "bac_bta"),
        (["restate", "--source", "sources/stok.yaml"], "stok"),
        (["validate", "sources/stok.yaml", "2013-10-07", "2013-10-08"], "stok"),
        (["status", "--definition", "patterns/shakout.sase"], "pattern/shakout"),
        (["tune", "models/bac_bta.yaml", "2013-10-07", "2013-10-08"], "bac_bta"),
        (["retire", "patterns/shakout.sase"], "pattern/shakout"),
        (["alerts", "send", "patterns/shakeout.sase"], "pattern/shakeout"),
        (["alerts", "send", "models/bac_beta.yaml"], "model/bac_beta"),
    ],
)
def test_the_path_of_a_definition_is_its_name(
    words: list[str], told: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of one whose file is gone: every verb speaks of the name, and not of the path."""
    monkeypatch.chdir(project)
    assert main(words) == 2
    said = capsys.readouterr().err.splitlines()[0]
    assert said.rstrip("'").endswith((f" {told}", f" '{told}")), said


def test_a_path_names_what_runs_and_no_other_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    live, other = project / "sources" / "stock.yaml", project / "stock.yaml"
    other.write_text(live.read_text())
    assert main(["detect", str(live), "2013-10-07", "2013-10-07"]) == 2
    assert "not live" not in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["detect", str(other), "2013-10-07", "2013-10-08"])
    assert f"{other} is not live: a live source is a file in" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["retire", str(other)])
    told = capsys.readouterr().err
    assert f"a live pattern is a file in {project / 'patterns'}, a live model is a file in" in told
