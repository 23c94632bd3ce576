"""The generator's files: reproducible, of the asked size, in the shipped format."""

from __future__ import annotations

import gzip
import hashlib
import json
from datetime import date
from pathlib import Path

import pandas as pd
import pytest

from chainlake.cli.main import main
from chainlake.errors import UsageError
from chainlake.generate import Recipe, generate

DATA = Path(__file__).resolve().parents[2] / "data"
SOURCES = ("stock", "traffic", "sensor")
DAY = date(2024, 6, 3)


def digest(folder: Path) -> str:
    """One hash over the names and bytes of all files of a folder."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


#: Bytes of two generated days; they may change only on purpose, since tests and benchmarks are compared over time.
PINNED = {
    "stock": "f7a37bd9267a058feca53fa0fe7282b5aa1d4ad911a9c76efa72af20cd7be140",
    "traffic": "5e7921487ba01fc85254e49711adb3bf6445769ee51e32da946e3359182c15f2",
    "sensor": "2aa3d9c54ebe70ef6feeb8611a9f086f1baea8aecabfbe88b1d32578efff91a0",
    "ticks": "514fd12c8f402899172fae6d327aca0eeac14fe3b53808ae0a8980776c20be99",
}


def make(kind: str, out: Path, **options: object) -> dict:
    """Two small days of a kind of file."""
    if kind == "ticks":
        return generate("stock", DAY, 2, out, Recipe(ticks=True, events_per_day=5_000, seed=4, **options))  # type: ignore[arg-type]
    return generate(kind, DAY, 2, out, Recipe(seed=4, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", PINNED)
def test_same_seed_same_bytes_as_ever(kind: str, tmp_path: Path) -> None:
    make(kind, tmp_path / "out", dirt=20)
    assert digest(tmp_path / "out") == PINNED[kind]


@pytest.mark.parametrize("kind", PINNED)
def test_another_seed_gives_other_bytes(kind: str, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    generate(
        "stock" if kind == "ticks" else kind, DAY, 1, one, Recipe(seed=1, ticks=kind == "ticks", events_per_day=15_000)
    )
    generate(
        "stock" if kind == "ticks" else kind, DAY, 1, two, Recipe(seed=2, ticks=kind == "ticks", events_per_day=15_000)
    )
    assert digest(one) != digest(two)


@pytest.mark.parametrize("source", SOURCES)
def test_a_day_does_not_depend_on_the_days_before_it(source: str, tmp_path: Path) -> None:
    generate(source, DAY, 2, tmp_path / "both", Recipe(seed=9))
    generate(source, date(2024, 6, 4), 1, tmp_path / "second", Recipe(seed=9))
    (second,) = (tmp_path / "second").iterdir()
    assert second.read_bytes() == (tmp_path / "both" / second.name).read_bytes()


@pytest.mark.parametrize("source", SOURCES)
def test_header_and_name_are_those_of_the_shipped_files(source: str, tmp_path: Path) -> None:
    shipped = sorted((DATA / source).glob("*.csv.gz"))[0]
    day = {"stock": date(2013, 10, 7), "traffic": date(2025, 10, 1), "sensor": date(2015, 8, 25)}[source]
    generate(source, day, 1, tmp_path)
    with gzip.open(shipped, "rt") as real, gzip.open(tmp_path / shipped.name, "rt") as made:
        assert real.readline() == made.readline()
    real_rows, made_rows = pd.read_csv(shipped), pd.read_csv(tmp_path / shipped.name)
    time = {"stock": "ts", "traffic": "Timestamp", "sensor": "time"}[source]
    forms = [rows[time].str.replace(r"\d", "0", regex=True)[0] for rows in (real_rows, made_rows)]
    assert forms[0] == forms[1]
    kinds = [rows.dtypes.map(lambda t: t.kind).to_dict() for rows in (real_rows, made_rows)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize(
    ("source", "events"),
    [("stock", 3_840), ("stock", 50_001), ("traffic", 4_320), ("traffic", 7_777), ("sensor", 20_000)],
)
def test_exactly_as_many_events_as_asked(source: str, events: int, tmp_path: Path) -> None:
    truth = generate(source, DAY, 1, tmp_path, Recipe(events_per_day=events, seed=3))
    (path,) = tmp_path.iterdir()
    rows = pd.read_csv(path)
    key, time = {"stock": ("ticker", "ts"), "traffic": ("Station", "Timestamp"), "sensor": ("channel", "time")}[source]
    assert len(rows) == events == truth["totals"]["events"] == truth["files"][0]["rows"]
    assert not rows.duplicated([key, time]).any()
    assert rows[key].nunique() == truth["keys"]
    moments = pd.to_datetime(rows[time])
    assert moments.is_monotonic_increasing


def test_few_events_without_anything_planted(tmp_path: Path) -> None:
    truth = generate("sensor", DAY, 1, tmp_path, Recipe(events_per_day=7, patterns=0, changes=0))
    assert truth["totals"] == {"events": 7, "duplicates": 0, "conflicts": 0, "bad": 0, "rows": 7, "late": 0}


@pytest.mark.parametrize(("day", "rows"), [(date(2024, 3, 10), 276), (date(2024, 11, 3), 300)])
def test_days_of_23_and_25_hours(day: date, rows: int, tmp_path: Path) -> None:
    truth = generate("traffic", day, 1, tmp_path)
    (path,) = tmp_path.iterdir()
    local = pd.read_csv(path).groupby("Station")["Timestamp"].apply(list)
    assert truth["totals"]["events"] == rows * 15
    hours = [text[11:13] for text in local.iloc[0]]
    assert hours.count("02") == (0 if rows == 276 else 12)
    assert hours.count("01") == (12 if rows == 276 else 24)


def test_ticks_share_milliseconds_and_repeat(tmp_path: Path) -> None:
    generate("stock", DAY, 1, tmp_path, Recipe(ticks=True, events_per_day=30_000, seed=2))
    (path,) = tmp_path.iterdir()
    rows = pd.read_csv(path)
    assert len(rows) == 30_000
    assert rows.columns.tolist() == ["ticker", "ts", "price", "size", "exchange", "condition", "suspicious"]
    assert pd.to_datetime(rows.ts).is_monotonic_increasing
    assert 0.5 < rows.duplicated(["ticker", "ts"]).mean() < 0.75
    assert 0.1 < rows.duplicated().mean() < 0.3
    shares = rows.ticker.value_counts(normalize=True)
    assert shares.iloc[0] > 10 * shares.iloc[-1]


def test_compressed_files_hold_the_same(tmp_path: Path) -> None:
    generate("stock", DAY, 1, tmp_path / "stored", Recipe(seed=1))
    generate("stock", DAY, 1, tmp_path / "small", Recipe(seed=1, compress=True))
    (stored,), (small,) = (tmp_path / "stored").iterdir(), (tmp_path / "small").iterdir()
    assert gzip.decompress(stored.read_bytes()) == gzip.decompress(small.read_bytes())
    assert small.stat().st_size < stored.stat().st_size / 2


@pytest.mark.parametrize(
    "options",
    [
        {"source": "weather"},
        {"source": "traffic", "ticks": True},
        {"events_per_day": 100},
        {"patterns": 9},
        {"days": 0},
        {"dirt": 1_000},
        {"seed": -1},
        {"patterns": -1},
        {"changes": -1},
        {"days": 3_000_000},
        {"days": 65_000},
        {"start": date(999, 1, 1)},
        {"events_per_day": 10**20},
    ],
)
def test_arguments_that_do_not_go_together(options: dict, tmp_path: Path) -> None:
    source, days, start = options.pop("source", "stock"), options.pop("days", 1), options.pop("start", DAY)
    with pytest.raises(UsageError):
        generate(source, start, days, tmp_path / "out", Recipe(**options))
    assert not list(tmp_path.iterdir())


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["generate", "sensor", "--from", "2024-06-03", "--days", "2", "--seed", "4", "--dirt", "20"]
    out, truth = tmp_path / "landing", tmp_path / "deep" / "truth.json"
    assert main([*arguments, "--out", str(out), "--truth", str(truth)]) == 0
    assert digest(out) == PINNED["sensor"]
    told = json.loads(truth.read_text())
    assert {file["name"] for file in told["files"]} == {path.name for path in out.iterdir()}
    assert "2 files" in capsys.readouterr().out
    assert main(["generate", "sensor", "--from", "2024-06-33", "--out", str(out)]) == 2
    assert main(["generate", "sensor", "--from", "2024-06-03", "--out", str(truth / "below")]) == 5
    assert f"{truth / 'below'} cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([("--out", "")], "--out must name a folder"),
        ([("--out", "there")], "--out must name a folder"),
        ([("--truth", "")], "--truth must name a file"),
        ([("--truth", ".")], "--truth must name a file"),
        ([("--write-source", "x.yaml")], "--write-source needs --ticks"),
        ([("--ticks",), ("--write-source", "x.txt")], "must name a .yaml file"),
        ([("--ticks",), ("--write-source", "no/x.yaml")], "must name a .yaml file"),
        ([("--ticks",), ("--write-source", "there.yaml")], "does not replace another file"),
    ],
)
def test_places_that_cannot_be_written(
    options: list[tuple[str, ...]],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("there", "there.yaml"):
        (tmp_path / name).write_text("mine")
    given = [word for option in options for word in option]
    arguments = ["generate", "stock", "--from", "2024-06-03", *([] if "--out" in given else ["--out", "out"])]
    assert main([*arguments, *given]) == 2
    assert message in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"there", "there.yaml"}
