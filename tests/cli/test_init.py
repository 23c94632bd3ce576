"""A project of one's own: it is made, it passes its own checks, and what is guessed of a file is right."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from chainlake.cli.main import main
from chainlake.definitions.formats.format import NULLS
from chainlake.definitions.source import load_sources
from chainlake.paths import Home
from chainlake.starter.file_names import expected_of, glob_of, path_of, source_name
from chainlake.starter.guess import guess


@pytest.fixture
def made(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project, in which the commands of this test run."""
    folder = tmp_path / "cold store"
    assert main(["init", str(folder)]) == 0
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(folder / "config"))
    monkeypatch.chdir(folder)
    return folder


def test_a_new_project_passes_its_own_checks(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    page = (made / "README.md").read_text()
    commands = re.findall(r"^chainlake (lint|match|try) (.*)$", page, re.MULTILINE)
    assert [verb for verb, _ in commands] == ["lint", "match", "try"]
    said = {}
    for verb, words in commands:
        assert main([verb, *words.split()]) == 0
        said[verb] = capsys.readouterr().out
    assert said["lint"] == "3 definitions and 1 landed file: 0 errors, 0 warnings, 2 tests run\n"
    # The door of room B is open from 10:30 to 10:50 in Berlin: nothing else is a match.
    rows = said["match"].splitlines()[2:-1]
    assert rows and all(re.search(r" 10:[345]\d:00\+02:00 +B ", row) for row in rows)
    # From 17:00 on the compressors take 0.9 kW more, and a window is two hours.
    changes = said["try"].split("\n\n")[0]
    (_, begun), (at, kind) = re.findall(r"(\d\d:\d\d):00\+02:00 +([a-z]+)", changes)
    assert (begun, kind) == ("init", "change") and "17:00" < at <= "19:00"


def test_its_recipe_runs_the_same_checks(made: Path) -> None:
    recipe = yaml.safe_load((made / ".github" / "workflows" / "check.yml").read_text())
    (step,) = [one for one in recipe["jobs"]["lint"]["steps"] if "lint" in one.get("run", "")]
    assert step["run"] == "chainlake lint --test --strict --on data/rooms_20250602.csv"
    assert main(step["run"].split()[1:]) == 0
    assert step["env"]["CHAINLAKE_CONFIG"].endswith("/config") and (made / ".gitignore").read_text() == ".chainlake/\n"


def test_a_broken_edit_does_not_pass(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = made / "config" / "patterns" / "door_left_open.sase"
    file.write_text(file.read_text().replace("degrees: 3", "degrees: 4"))
    assert main(["lint", "--test"]) == 1
    # The room of this test gets three degrees warmer; the other conditions hold for the two readings.
    (line,) = (one for one in capsys.readouterr().out.splitlines() if "test warmer while the compressor runs" in one)
    assert (
        "the match cold = 1, warm = 2 is not found: for these events warm.temperature >= cold.temperature + 4" in line
    )
    assert line.rstrip().endswith("is not true (key tests)")


def test_a_folder_that_is_not_empty_is_left_alone(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    assert main(["init", str(tmp_path / "mine")]) == 2
    assert "this folder is not empty: it contains notes.txt" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    assert main(["init", str(tmp_path / "mine" / "notes.txt")]) == 2
    assert "this is not a folder" in capsys.readouterr().err


#: Files, and what must be guessed of them: time and format, key, attributes with types, identity.
FILES = {
    "trades_20250102.csv": (
        "Date;Time;Symbol;Last Price;Size\n02.01.2025;09:30:00;ABC;10,5;100\n02.01.2025;09:30:01;XYZ;20,1;50\n"
        "02.01.2025;09:30:02;ABC;11,9;\n",
        (["Date", "Time"], "%d.%m.%Y %H:%M:%S", "Symbol", {"last_price": "double", "size": "double"}, "unique"),
    ),
    "log.csv": (
        "epoch,host,level,msg\n1735812000,web1,INFO,started\n1735812005,web1,ERROR,\"disk, full\"\n"
        "1735812005,web2,INFO,started\n1735812009,web2,ERROR,timeout\n",
        ("epoch", "epoch_s", "host", {"level": "string", "msg": "string"}, "unique"),
    ),
    "one.csv": (
        "when,temperature\n2025-01-01T00:00:00Z,20\n2025-01-01T01:00:00Z,23\n2025-01-01T02:00:00Z,NaN\n",
        ("when", "iso", None, {"temperature": "double"}, "unique"),
    ),
    "us.csv": (
        "id,Start (local),Flow,ok,007\n1205168,10/31/2025 00:05,12,true,007\n1205175,10/31/2025 00:05,13,false,010\n"
        "1205168,10/31/2025 00:10,12,true,007\n1205175,10/31/2025 00:10,14,,007\n",
        ("Start (local)", "%m/%d/%Y %H:%M", "id", {"flow": "double", "ok": "boolean", "c_007": "string"}, "unique"),
    ),
    "ms.tsv": (
        "t\tsensor\tx\n1735812000123\ta\t1e3\n1735812000123\ta\t2.5\n1735812001123\tb\t-.5\n1735812001500\tb\t1\n",
        ("t", "epoch_ms", "sensor", {"x": "double"}, "multiset"),
    ),
    "daily.csv": (
        "day|ticker|type|close\n20250102|A|x|1\n20250103|A|x|2\n20250102|B|y|1\n20250103|B|y|2\n",
        ("day", "%Y%m%d", "ticker", {"type_": "string", "close": "double"}, "unique"),
    ),
}  # fmt: skip


@pytest.mark.few(4)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("packed", [False, True])
def test_what_is_guessed_of_a_file(
    name: str,
    packed: bool,
    home: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, (time, form, key, attributes, identity) = FILES[name]
    file = tmp_path / (f"{name}.gz" if packed else name)
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    folder = tmp_path / "project"
    assert main(["init", str(folder), "--from", str(file)]) == 0
    source = yaml.safe_load((folder / "config" / "sources" / f"{source_name(file.name)}.yaml").read_text())
    (rows,) = source["formats"]
    assert (rows["time"]["column"], rows["time"]["format"]) == (time, form)
    assert {name: one["type"] for name, one in source["attributes"].items()} == attributes
    assert source["identity"] == identity
    mapped = rows.get("map", {})
    assert mapped.get(source["key"], source["key"]) == ({"constant": "all"} if key is None else key)
    # Every row is read, the pattern's tests hold, and it runs.
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(folder / "config"))
    monkeypatch.chdir(folder)
    capsys.readouterr()
    assert main(["lint", "--json", "--test", "--on", f"data/{file.name}"]) == 0
    told = json.loads(capsys.readouterr().out)
    findings = told["findings"]
    assert told["tests"] == 2
    assert (
        all("the window is larger than a day" in one["what"] for one in findings)
        and name == "daily.csv"
        or not findings
    )
    assert main(["match", "first_pattern", f"data/{file.name}", "--source", source_name(file.name)]) == 0
    assert "left out" not in capsys.readouterr().err


#: Files with numbers that are written in other ways: the columns of the second row must be these numbers.
WRITTEN = {
    "bars.csv": (
        'ts,ticker,close,volume,turnover\n2025-01-03T09:30:00,A,100.00,"1,429",-\n'
        '2025-01-03T09:31:00,A,101.50,"12,001",1e3\n2025-01-03T09:32:00,A,-,980,n.a.\n',
        {"thousands": ",", "null": {"-", "n.a."}},
        {"close": 101.5, "volume": 12001, "turnover": 1000},
    ),
    "kurse.csv": (
        "ts;wkn;kurs;menge\n2025-01-03T09:30:00;A;1.010,5;NONE\n2025-01-03T09:31:00;A;998,25;10.000\n"
        "2025-01-03T09:32:00;A;1.000;7\n",
        {"delimiter": ";", "decimal": ",", "thousands": ".", "null": {"NONE"}},
        {"kurs": 998.25, "menge": 10000},
    ),
    "counts.csv": (
        "ts;site;flow;speed\n2025-01-03T09:30:00;A;1,429;99.5\n2025-01-03T09:31:00;A;12,001;35.0\n"
        "2025-01-03T09:32:00;A;980;?\n",
        {"delimiter": ";", "thousands": ",", "null": {"?"}},
        {"flow": 12001, "speed": 35.0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_numbers_are_numbers_however_they_and_their_absence_are_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, signs, second = WRITTEN[name]
    (tmp_path / name).write_text(text)
    assert main(["init", str(tmp_path / "project"), "--from", str(tmp_path / name)]) == 0
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(tmp_path / "project" / "config"))
    monkeypatch.chdir(tmp_path / "project")
    source = load_sources(Home.from_env())[source_name(name)]
    (form,) = source.formats
    assert {"delimiter": form.delimiter, "decimal": form.decimal, "thousands": form.thousands} == {
        "delimiter": ",", "decimal": "."
    } | {key: sign for key, sign in signs.items() if key != "null"}  # fmt: skip
    assert set(form.nulls) - set(NULLS) == signs["null"]
    (tmp_path / "steps.sase").write_text(
        f"---\nsource: {source.name}\noutput: [{', '.join(second)}]\n---\n"
        f"PATTERN SEQ(Row a, Row b)\nWHERE b.{source.key} = a.{source.key}\nWITHIN 1 min\n"
    )
    capsys.readouterr()
    assert main(["lint", "--strict", "--on", f"data/{name}"]) == 0
    capsys.readouterr()
    assert (
        main(["match", str(tmp_path / "steps.sase"), f"data/{name}", "--source", source.name, "--format", "json"]) == 0
    )
    (found, *_) = json.loads(capsys.readouterr().out)
    assert {column: found["b"][column] for column in second} == second


def test_a_day_that_could_be_a_month_is_marked(tmp_path: Path) -> None:
    for text, doubtful in (("01/02/2025 10:00", True), ("13/02/2025 10:00", False), ("2025-01-02 10:00", False)):
        file = tmp_path / "a.csv"
        file.write_text(f"t,key,x\n{text},a,1\n{text},b,1\n")
        assert guess(file).ambiguous is doubtful


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "no header line with rows"),
        ("a,b\n", "no header line with rows"),
        ("a,b\n1,2\n", "none of the columns a, b is a time"),
        ("a,a\n2025-01-01 10:00,2\n", "a blank or duplicate name"),
        ("ts,key\n2025-01-01 10:00,k\n2025-01-01 10:01,k\n", "no column besides the time and the key"),
        ("\x1f\x8b broken", "CSV file in UTF-8"),
    ],
)
def test_a_file_that_says_too_little(
    content: str, told: str, home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.csv"
    file.write_text(content, encoding="latin-1")
    assert main(["init", str(tmp_path / "p"), "--from", str(file)]) == 4
    assert told in capsys.readouterr().err and not (tmp_path / "p").exists()
    assert main(["init", str(tmp_path / "p"), "--from", str(tmp_path)]) == 4


def test_a_first_pattern_and_model_are_of_what_changes(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The place of a detector never changes; its speed falls to a half, and comes back.
    speeds = (60, 61, 62, 30, 31, 30, 60, 61)
    rows = [
        f"{at // 60:02d}:{at % 60:02d},{node},{node / 10},{speed + node}"
        for at, speed in zip(range(0, 40, 5), speeds, strict=True)
        for node in (1, 2)
    ]
    file = tmp_path / "loops.csv"
    file.write_text("Time,Station,Mile,Speed (mph)\n" + "\n".join(f"2025-03-03 {row}" for row in rows))
    folder = tmp_path / "project"
    assert main(["init", str(folder), "--from", str(file)]) == 0
    source = yaml.safe_load((folder / "config" / "sources" / "loops.yaml").read_text())
    assert source["attributes"] == {"mile": {"type": "double"}, "speed": {"type": "double", "unit": "mph"}}
    model = yaml.safe_load((folder / "config" / "models" / "first_model.yaml").read_text())
    assert (model["response"], model["features"], model["nodes"]) == ("speed", ["mile"], ["1", "2"])
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(folder / "config"))
    monkeypatch.chdir(folder)
    assert main(["lint", "--strict"]) == 0
    capsys.readouterr()
    assert main(["match", "first_pattern", "data/loops.csv", "--source", "loops", "--format", "csv"]) == 0
    # Both stations rise from 30 to 60 and more: some rows at least, or the first look shows nothing.
    assert len(capsys.readouterr().out.splitlines()) > 3
    assert "chainlake ingest loops 2025-03-02 2025-03-05\n" in (folder / "README.md").read_text()
    assert "chainlake report --open" in (folder / "README.md").read_text()


def test_help_calls_the_command_as_it_was_called(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for program, called in (("/x/bin/chainlake", "chainlake"), ("jobs/__main__.py", "python -m jobs")):
        monkeypatch.setattr("sys.argv", [program])
        with pytest.raises(SystemExit):
            main(["status", "--help"])
        said = capsys.readouterr().out
        assert said.startswith(f"usage: {called} status") and f"  {called} status --definition" in said


def test_digits_inside_a_word_belong_to_it() -> None:
    """Only a number that stands alone, a long one, or the one at the end varies from file to file."""
    told = {
        "i80e_loops_20240309.csv": ("i80e_loops", "i80e_loops_*.*", r"i80e_loops_(?P<date>\d{8})"),
        "d12_station_5min_2025-10-01.csv.gz": (
            "d12_station_5min", "d12_station_5min_*-*-*.*", r"d12_station_5min_(?P<date>\d{4}-\d\d-\d\d)"
        ),
        "log3.csv": ("log", "log*.*", None),
        "plant_7_20250102_r2.csv": ("plant_r", "plant_*_*_r*.*", r"plant_\d+_(?P<date>\d{8})_r\d+"),
        "007.csv": ("events", "*.*", None),
    }  # fmt: skip
    assert {name: (source_name(name), glob_of(name), path_of(name)) for name in told} == told
    assert expected_of("i80e_loops_20240309.csv") == "i80e_loops_{date:%Y%m%d}*" and expected_of("log3.csv") is None


LOOPS = "Timestamp,Detector,Milepost,Speed (mph)\n" + "".join(
    f"03/09/2024 {at:02}:00,{loop},{place},{60 + at}\n" for at in range(3) for loop, place in (("A", 1.5), ("B", 2))
)


def test_the_date_of_a_files_name_tells_day_from_month_and_a_road_has_places(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, form in (("i80e_20240309.csv", "%m/%d/%Y %H:%M"), ("i80e_20240903.csv", "%d/%m/%Y %H:%M")):
        file = tmp_path / name
        file.write_text(LOOPS)
        found = guess(file)
        assert (found.form, found.ambiguous) == (form, False)
    file = tmp_path / "i80e_now.csv"
    file.write_text(LOOPS)
    assert guess(file).ambiguous
    assert main(["init", str(tmp_path / "p"), "--from", str(tmp_path / "i80e_20240309.csv"), "--name", "road"]) == 0
    text = (tmp_path / "p" / "config" / "sources" / "road.yaml").read_text()
    (rows,) = yaml.safe_load(text)["formats"]
    assert rows["map"]["position"] == "Milepost"
    marked = [line.split(":")[0].strip() for line in text.splitlines()[2:] if "(?)" in line]
    assert marked == ["key", "zone", "position", "path", "# expect", "glob"]
    assert main(["init", str(tmp_path / "q"), "--from", str(file), "--name", "my road"]) == 2
    assert "a source cannot be called 'my road'" in capsys.readouterr().err
    assert main(["init", str(tmp_path / "q"), "--name", "road"]) == 2
    assert "--name needs --from" in capsys.readouterr().err and not (tmp_path / "q").exists()


def test_its_commands_are_found_after_its_settings_are_read(made: Path) -> None:
    asked = ". ./env.sh && command -v chainlake"
    found = subprocess.run(
        ["bash", "-c", asked], env={"PATH": "/usr/bin:/bin"}, cwd=made, capture_output=True, text=True
    )
    assert found.stdout.strip() == str(Path(sys.executable).with_name("chainlake"))
