"""``backtest``: alarms against labels, per setting of a pattern's parameters."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from chainlake.cep.backtest import Alarm, Label, score
from chainlake.cli.inputs.labels import read_labels, settings_of
from chainlake.cli.main import main
from chainlake.errors import InputError, UsageError

PATTERN = """---
params: {hot: 50}
---
PATTERN SEQ(Open o, Heat h)
WHERE h.door = o.door AND h.temp >= hot
WITHIN 1 min
"""
#: Two fires at the north door (10:00, 12:00), a false alarm of 55 degrees at the south door.
EVENTS = """id,type,ts,door,temp
1,Open,2025-01-01T10:00:00Z,north,
2,Heat,2025-01-01T10:00:20Z,north,70
3,Heat,2025-01-01T10:00:40Z,north,80
4,Open,2025-01-01T11:00:00Z,south,
5,Heat,2025-01-01T11:00:10Z,south,55
6,Open,2025-01-01T12:00:00Z,north,
7,Heat,2025-01-01T12:00:50Z,north,60
"""
LABELS = """start,end,key
2025-01-01T10:00:00Z,2025-01-01T10:01:00Z,north
2025-01-01T11:00:00Z,2025-01-01T11:01:00Z,north
2025-01-01T12:00:00Z,,
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    found = {}
    for name, text in (("fire.sase", PATTERN), ("doors.csv", EVENTS), ("labels.csv", LABELS)):
        (tmp_path / name).write_text(text)
        found[name] = str(tmp_path / name)
    return found


def rows(capsys: pytest.CaptureFixture[str], files: dict[str, str], *more: str) -> list[dict[str, str]]:
    words = ["backtest", files["fire.sase"], files["doors.csv"], "--labels", files["labels.csv"], "--key", "door"]
    assert main([*words, "--format", "csv", *more]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def test_each_setting_is_held_against_the_labels(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """By hand: 50 finds both fires and a false alarm; 60 both fires alone; 75 the first one, decided after 40 s."""
    found = rows(capsys, files, "--grid", "hot=50,60,75,90")
    told = [tuple(row.values()) for row in found]
    assert list(found[0]) == [
        "hot",
        "matches",
        "alarms",
        "true alarms",
        "labels found",
        "precision",
        "recall",
        "delay (s)",
    ]
    assert told == [
        ("50.0", "4", "3", "2", "2", "0.6667", "0.6667", "35.0"),
        ("60.0", "3", "2", "2", "2", "1.0", "0.6667", "35.0"),
        ("75.0", "1", "1", "1", "1", "1.0", "0.3333", "40.0"),
        ("90.0", "0", "0", "0", "0", "", "0.0", ""),
    ]
    (own,) = rows(capsys, files)
    assert tuple(own.values()) == told[0][1:]


def test_the_slack_merges_alarms_and_reaches_labels() -> None:
    second = 1_000_000
    alarms = [Alarm(0, second, second, "a")]
    labels = [Label(3 * second, 4 * second, "a")]
    assert score(1, alarms, labels, 0).recall == 0.0
    near = score(1, alarms, labels, 2 * second)
    assert (near.precision, near.recall, near.delay_s) == (1.0, 1.0, -2.0)
    assert score(1, alarms, [Label(0, 0, "b")], 0).found == 0 and score(0, [], [], 0).recall is None


def test_grids() -> None:
    assert list(settings_of(["a=0.1..0.3:3", "b=1,2"])) == [
        {"a": a, "b": b} for a in (0.1, 0.2, 0.3) for b in (1.0, 2.0)
    ]
    assert list(settings_of([])) == [{}]
    for wrong in ("a", "a=", "a=1..2", "a=1..2:1", "a=x", "=1", "a=1..inf:2"):
        with pytest.raises(UsageError, match="is not a grid"):
            list(settings_of([wrong]))
    with pytest.raises(UsageError, match="more than 1,000 settings"):
        list(settings_of(["a=0..1:100", "b=0..1:11"]))


def test_labels_are_in_the_zone_that_is_known(tmp_path: Path) -> None:
    file = tmp_path / "l.csv"
    file.write_text("start,end\n2025-01-01 10:00,2025-01-01T16:00:00Z\n")
    (one,) = read_labels(file, ZoneInfo("America/New_York"))
    assert (one.end - one.start) == 3_600_000_000 and one.key is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("when\n1\n", "no column start"),
        ("start\nsoon\n", "'soon' is not a time"),
        ("start,end\n2025-01-02,2025-01-01\n", "ends before it begins"),
    ],
)
def test_labels_that_are_none(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "l.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=told) as caught:
        read_labels(file, None)
    assert caught.value.line is not None
    with pytest.raises(InputError, match="cannot be read"):
        read_labels(tmp_path / "none.csv", None)


def test_a_parameter_that_there_is_not(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["backtest", files["fire.sase"], files["doors.csv"], "--labels", files["labels.csv"], "--grid", "hott=1,2"]
    assert main(words) == 2 and "Did you mean hot?" in capsys.readouterr().err


@pytest.mark.slow
def test_settings_are_drawn(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each setting is named in the picture, and the same settings give the same file."""
    first, again, bitmap = (tmp_path / name for name in ("a.svg", "b.svg", "c.png"))
    for path in (first, again, bitmap):
        rows(capsys, files, "--grid", "hot=50,60,75,90", "--picture", str(path))
    text = first.read_text()
    assert text == again.read_text() and bitmap.read_bytes().startswith(b"\x89PNG")
    # Beside the points and below the bars; the setting without an alarm is there, too.
    assert all(text.count(f"hot={value}<") == 2 for value in (50, 60, 75, 90))
    assert "labels found" in text and "fire: 3 labels, slack 0 s" in text
