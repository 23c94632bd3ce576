"""``try``: what ``match`` is for patterns, for models: changes of files, without a lake."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from chainlake.cli.main import main
from chainlake.cli.printed_findings import PRINTED, flagged_only
from chainlake.model_change.library import monitor
from chainlake.paths import Home
from chainlake.schemas.models import FINDINGS
from tests.model_change import lab

SOURCE = """description: a lab
key: sensor
type: Reading
zone: Europe/Berlin
attributes: {p: {type: double}, y: {type: double}}
formats:
  - {name: rows, glob: '*', time: {column: ts, format: iso}}
"""


@pytest.fixture
def readings(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two days of the lab as a file, and its model."""
    config = tmp_path / "config"
    for folder in ("sources", "models"):
        (config / folder).mkdir(parents=True)
    (config / "sources" / "lab.yaml").write_text(SOURCE)
    (config / "models" / "bend.yaml").write_text(lab.MODEL)
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(config))
    file = tmp_path / "lab.csv"
    with file.open("w") as out:
        out.write("ts,sensor,p,y\n")
        for row in lab.events(days=2).select(["ts", "sensor", "p", "y"]).to_pylist():
            out.write(f"{row['ts'].isoformat()},{row['sensor']},{row['p']!r},{row['y']!r}\n")
    return file


def test_it_finds_what_the_monitor_finds(readings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["try", "bend", str(readings), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    wanted = monitor(lab.MODEL, lab.events(days=2), key="sensor").changes.to_pylist()
    assert [(row["ts"], row["kind"]) for row in rows] == [(f"{w['ts']:%Y-%m-%dT%H:%M:%SZ}", w["kind"]) for w in wanted]
    for row, change in zip(rows, wanted, strict=True):
        assert (
            row["local"][:19]
            == f"{change['ts'].astimezone(__import__('zoneinfo').ZoneInfo('Europe/Berlin')):%Y-%m-%d %H:%M:%S}"
        )
        for one in change["beta_after"] or ():
            assert float(row[one["feature"]]) == pytest.approx(one["value"], rel=1e-9)
    assert main(["try", "bend", str(readings), "--metrics", "--format", "json"]) == 0
    days = json.loads(capsys.readouterr().out)
    assert [day["day"] for day in days] == ["2025-03-01", "2025-03-02"] and all(day["rounds"] > 0 for day in days)
    assert main(["try", "bend", str(readings), "--metrics"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown[2:]] == ["bend", "bend", "(2"]


def test_a_pattern_is_not_taken_and_the_verb_for_it_is_named(
    readings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = readings.parent / "config" / "patterns"
    folder.mkdir()
    (folder / "onset.sase").write_text("PATTERN SEQ(A a)")
    for given in ("onset", str(folder / "onset.sase")):
        assert main(["try", given, str(readings)]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "is a pattern" in said and f"chainlake match {given} {readings} --near-misses" in said
    assert main(["try", "onse", str(readings)]) == 2
    assert "there is no model 'onse'" in capsys.readouterr().err


def test_a_table_has_both(readings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["try", str(Path(readings.parent, "config", "models", "bend.yaml")), str(readings)]) == 0
    changes, metrics = capsys.readouterr().out.split("\n\n")
    assert changes.splitlines()[0].split()[:5] == ["ts", "local", "group", "kind", "error"]
    assert metrics.splitlines()[0].split()[:3] == ["day", "group_id", "rounds"]


#: A monitor of each other kind over the lab, and what of its rows is printed.
OTHERS = {
    "threshold": ("kind: threshold\nvalue: y\nthreshold: 48\n", ["kind", "mean", "sensors heard"]),
    "safe_zones": (
        "kind: safe_zones\nvalues: [p, y]\nregion: {box: [[null, 50], [48, null]]}\n",
        ["group", "kind", "nodes heard", "outside their zone", "beyond", "by", "mean p", "mean y"],
    ),
    "shared_learning": (
        "kind: shared_learning\nresponse: y\nfeatures: [p]\nlearning_rate: 0.0001\nsync: {static: 8}\n",
        ["group", "learner", "rounds", "loss", "never sharing", "always sharing", "errors", "constant", "p"],
    ),
    "latent_faults": (
        "kind: latent_faults\ncounters: [p, y]\nalpha: 0.5\n",
        ["group", "machine", "p", "flagged", "first flagged", "counters"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHERS)
def test_every_kind_prints_what_it_finds(readings: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    text, columns = OTHERS[kind]
    head = "source: lab\nstart: 2025-03-01\nnodes: [a, b, c]\nround: {length: 10 min}\n"
    model = readings.parent / "config" / "models" / f"{kind}.yaml"
    model.write_text(head + text)
    found = monitor(model, lab.events(days=2), key="sensor").found.to_pylist()
    mine = [row for row in found if kind != "shared_learning" or row["kind"] == "day"]
    assert main(["try", kind, str(readings), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == len(mine) > 1
    assert [name for name in rows[0] if name not in ("ts", "local", "day")] == columns
    for name, column in (("p", "p"), ("loss", "loss"), ("excess", "by")):
        if kind != "threshold" and name in found[0]:
            told = sorted(float(row[column]) for row in rows if row[column] != "")
            assert told == pytest.approx(sorted(row[name] for row in mine if row[name] is not None), rel=1e-9)


def test_the_table_of_machines_has_the_flagged_ones(readings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = "source: lab\nstart: 2025-03-01\nnodes: [a, b, c]\nround: {length: 10 min}\n"
    model = readings.parent / "config" / "models" / "odd.yaml"
    for alpha, many in (("1e-300", 0), ("0.999999", None)):
        model.write_text(head + OTHERS["latent_faults"][0].replace("0.5", alpha))
        found = monitor(model, lab.events(days=2), key="sensor").found.to_pylist()
        flagged = sum(row["flagged"] for row in found)
        assert flagged == many or many is None
        assert main(["try", "odd", str(readings)]) == 0
        table, _ = capsys.readouterr().out.split("\n\n")
        assert "False" not in table and "True" not in table
        others = len(found) - flagged
        assert (f"and {others} days of machines that are not flagged" in table) == (others > 1)
        assert f"({flagged} row" in table
    columns = ["day", "group", "machine", "p", "flagged", "first flagged", "counters"]
    rows = [["1", "", "a", 0.1, True, None, "x +1"], ["1", "", "b", 13.0, False, None, "x -1"]]
    assert flagged_only((columns, rows)) == ((["day", "machine", "p", "counters"], [["1", "a", 0.1, "x +1"]]), 1)
    assert flagged_only((["kind"], [["below"]])) == ((["kind"], [["below"]]), 0)


def test_every_table_of_findings_has_a_form() -> None:
    assert set(PRINTED) == {table.path_name for table in FINDINGS}


def test_a_node_that_no_event_has_is_told(readings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = readings.parent / "config" / "models" / "bend.yaml"
    text = model.read_text()
    model.write_text(text.replace("nodes: [a,", "nodes: [A1,"))
    assert "A1" in model.read_text()
    main(["try", "bend", str(readings)])
    assert "note: no event in these files has the sensor 'A1'" in capsys.readouterr().err


def test_it_begins_with_the_files(readings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = readings.parent / "config" / "models" / "bend.yaml"
    model.write_text(model.read_text().replace("start: 2025-03-01", "start: 2031-01-01"))
    assert main(["try", "bend", str(readings), "--format", "csv"]) == 0
    assert "init" in capsys.readouterr().out


def test_what_is_wrong_is_said(readings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["try", "bendd", str(readings)]) == 2
    assert "Did you mean bend?" in capsys.readouterr().err
    empty = readings.with_name("empty.csv")
    empty.write_text("ts,sensor,p,y\n")
    assert main(["try", "bend", str(empty)]) == 4
    assert "no events that bend could run over" in capsys.readouterr().err
