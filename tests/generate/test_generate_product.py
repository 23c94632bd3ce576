"""The product on generated files: what was planted is found, what was spoilt is set aside."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from chainlake.cep.library import match
from chainlake.cli.main import main
from chainlake.definitions.source import load_source
from chainlake.generate import Recipe, generate
from chainlake.ingest.events.local import in_order, resolve_local
from chainlake.ingest.landing.discovery import look_into
from chainlake.ingest.rows.parse import read_file
from chainlake.ingest.rows.parsed import Task
from chainlake.model_change.library import monitor
from chainlake.paths import PROJECT
from tests.shipped.brute_force import PATTERNS
from tests.shipped.shipped_data import read

CONFIG = PROJECT / "dags" / "config"
SOURCES = ("stock", "traffic", "sensor")
#: Patterns over histories: whole stretches of prices would have to be laid out for them.
NOT_PLANTED = {"echo"}
#: Patterns that choose among matches of which other patterns plant theirs.
COMPANIONS = {"shakeout_pairs", "jam_cleared", "gas_seen"}


def events(source: str, folder: Path) -> pa.Table:
    """Generated events in the form that the engines' library functions take."""
    rows = read(source, folder)
    table = pa.Table.from_pandas(rows.rename(columns={"id": "event_id"}), preserve_index=False)
    at = table.column_names.index("ts")
    return table.set_column(at, "ts", table["ts"].cast(pa.timestamp("us", tz="UTC")))


def ids(told: dict | list) -> str | list[str]:
    """Event ids of what the truth tells about one name."""
    return [ids(one) for one in told] if isinstance(told, list) else f"{told['key']}@{told['ts']}"  # type: ignore[misc]


@pytest.mark.few(1)
@pytest.mark.parametrize("source", SOURCES)
def test_engine_finds_every_planted_match(source: str, tmp_path: Path) -> None:
    truth = generate(source, date(2024, 6, 3), 2, tmp_path, Recipe(seed=12, patterns=2, changes=0))
    table = events(source, tmp_path)
    planned = truth["patterns"]
    assert set(planned) == {name for name, (of, _) in PATTERNS.items() if of == source} - NOT_PLANTED - COMPANIONS
    for pattern in planned:
        matches = match((CONFIG / "patterns" / f"{pattern}.sase").read_text(), table)
        found = [{name: ids for name, ids in one.items() if name != "severity"} for one in matches]
        planted = [{name: ids(told) for name, told in one.items()} for one in truth["patterns"][pattern]]
        assert len(planted) == 4
        assert all(one in found for one in planted), pattern


def test_monitor_finds_every_planted_change_and_no_other(tmp_path: Path) -> None:
    """The shipped model, begun on the first generated day: one change within an hour after each planted one."""
    truth = generate("traffic", date(2024, 6, 3), 3, tmp_path, Recipe(seed=12, patterns=0, changes=2))
    model = yaml.safe_load((CONFIG / "models" / "i5n_speed_profile.yaml").read_text())
    result = monitor(model | {"start": date(2024, 6, 3)}, events("traffic", tmp_path), key="detector")
    told = result.changes.to_pylist()
    times = [int(row["ts"].timestamp() * 1e6) for row in told if row["kind"] == "change"]
    planted = [change["ts"] for change in truth["changes"]]
    assert len(planted) == 6
    assert len(times) == len(planted)
    assert all(0 <= found - change <= 3_600_000_000 for found, change in zip(times, planted, strict=True))


def test_parser_gives_every_reading_of_a_day_with_a_double_hour_its_own_time(tmp_path: Path) -> None:
    truth = generate("traffic", date(2024, 11, 3), 1, tmp_path)
    (file,) = truth["files"]
    task = Task(file["name"], str(tmp_path / file["name"]), None, "f", "l", {}, date(2024, 11, 3), "")
    rows = read_file(load_source(CONFIG / "sources" / "traffic.yaml"), task).rows
    moments = set(zip(rows["detector"].to_pylist(), rows["ts"].to_pylist(), strict=True))
    assert len(moments) == truth["totals"]["events"] == 300 * 15


def test_ticks_go_through_the_source_that_is_written_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Equal trades are different events, and those that the next file repeats are the same ones."""
    home, config, out = tmp_path / "home", tmp_path / "tick.yaml", tmp_path / "landing"
    arguments = ["--ticks", "--from", "2024-06-03", "--days", "2", "--events-per-day", "3000", "--dirt", "30"]
    places = ["--out", str(out), "--write-source", str(config), "--truth", str(home)]
    assert main(["generate", "stock", *arguments, *places]) == 0
    assert main(["generate", "stock", *arguments, *places]) == 0
    assert "2 files, 6" in capsys.readouterr().out
    truth, definition = json.loads(home.read_text()), load_source(config)
    files = in_order([one for path in out.iterdir() for one in look_into(definition, path, path.name)])
    tables, bad = [], 0
    for file in files:
        whole = read_file(definition, Task.of(file, file.path))
        bad += len(whole.bad)
        tables.append(whole.rows)
    resolved = resolve_local(definition, files, tables)
    assert (
        (len(resolved.events), resolved.conflicts, resolved.superseded)
        == (truth["totals"]["events"], 0, 0)
        == (6000, 0, 0)
    )
    assert (resolved.duplicates, bad) == (truth["totals"]["duplicates"], len(truth["bad_rows"]))
    assert resolved.duplicates == 30 and bad > 0
    content = resolved.events.select(["type", "ticker", "ts", "price", "size", "exchange"])
    assert len(content.group_by(content.column_names).aggregate([])) < 5500


@pytest.mark.few(1)
@pytest.mark.parametrize("source", SOURCES)
def test_parser_sets_exactly_the_bad_rows_aside(source: str, tmp_path: Path) -> None:
    truth = generate(source, date(2024, 6, 3), 2, tmp_path, Recipe(seed=12, dirt=20))
    definition = load_source(CONFIG / "sources" / f"{source}.yaml")
    good, bad = 0, []
    for file in truth["files"]:
        path = tmp_path / file["name"]
        task = Task(file["name"], str(path), None, "f", "l", {}, date.fromisoformat(file["date"]), "")
        whole = read_file(definition, task)
        good += len(whole.rows)
        bad += [(file["name"], line) for line in whole.bad["line"].to_pylist()]
    assert sorted(bad) == sorted((row["file"], row["line"]) for row in truth["bad_rows"])
    totals = truth["totals"]
    assert good == totals["events"] + totals["duplicates"] + totals["conflicts"]
