"""Files parsed in groups: few tasks and few data files however many files land, and each file's trouble its own."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import Counter
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainlake.definitions.source import Source, load_sources
from chainlake.errors import AuditFailed
from chainlake.ingest.landing import container
from chainlake.ingest.landing.discovery import discover
from chainlake.ingest.rows import groups, lines, parse
from chainlake.ingest.rows.groups import GroupReport, GroupWork, groups_of
from chainlake.ingest.rows.parsed import WAITING, Task
from chainlake.lake.delta import data_files, tables
from chainlake.lake.delta.data_files import DataFiles
from chainlake.schemas.raw import raw_table
from tests.ingest.conftest import NOW, Lake

pytestmark = pytest.mark.slow

DAY = date(2025, 1, 1)


def task(name: str, size: int, day: date | None = None, file: str = "") -> Task:
    return Task(name, file or name, None, name, name, {}, day, "", size=size)


def text(rows: int, start: int = 0, dirt: str = "") -> str:
    lines = [f"2025-01-01 10:{n // 60:02d}:{n % 60:02d},A,1.5,{n}\n" for n in range(start, start + rows)]
    return "ts,ticker,price,volume\n" + "".join(lines) + dirt


@pytest.mark.parametrize("number", [1, 10, 2_000, 20_000])
def test_small_files_are_few_groups_of_all_of_them(number: int) -> None:
    tasks = [task(f"{n:05}", 200, date.fromordinal(738000 + n // 20)) for n in range(number)]
    found = groups_of(tasks, 4)
    assert Counter(one.path for group in found for one in group) == Counter(one.path for one in tasks)
    assert len(found) <= max(4 * groups._PER_CORE + 1, number * groups._FILE_BYTES // groups._MOST_BYTES * 2 + 1)
    # Neighbours by date, so that a day's rows come into few data files.
    days = Counter(one.file_date for group in found for one in {one.file_date: one for one in group}.values())
    assert days.total() <= number // 20 + 1 + len(found)


def test_a_group_is_bounded_by_bytes_and_the_largest_is_first() -> None:
    tasks = [task(f"{n}", 30 << 20) for n in range(10)] + [task("large", 1 << 30), task("small", 10)]
    found = groups_of(tasks, 2)
    assert [one.path for one in found[0]] == ["large"]
    assert all(sum(one.size for one in group) <= groups._MOST_BYTES for group in found[1:])
    # The size of an archive is not that of each of its members.
    members = groups_of([task(f"a.zip!{n}", 1 << 30, file="a.zip") for n in range(100_000)], 2)
    assert all(len(group) > 100 for group in members[:-1])
    assert groups_of([], 2) == []


def landed(lake: Lake, **files: str | bytes) -> tuple[Source, list[Task]]:
    for name, content in files.items():
        lake.land("bars", f"bars_{name}.csv", content)
    source = load_sources(lake.home)["bars"]
    tables.ensure_table(lake.home, raw_table(source))
    found = discover(lake.home, source, NOW).files
    return source, [Task.of(found[path], f"load of {path[5:-4]}") for path in sorted(found)]


def work(lake: Lake, source: Source) -> GroupWork:
    staging = lake.home.root / "staging"
    staging.mkdir(exist_ok=True)
    return GroupWork(source, lake.home.table("raw", "bars"), str(staging))


def written(lake: Lake, report: GroupReport) -> tuple[Counter[str], Counter[str]]:
    """Rows per load in data files and in staged files."""
    folder = Path(lake.home.table("raw", "bars"))
    good = [pq.ParquetFile(folder / file.path).read(["load_id"]) for file in report.files]
    bad = [pq.read_table(path, columns=["load_id"]) for path in report.bad]
    return tuple(Counter(load for part in parts for load in part["load_id"].to_pylist()) for parts in (good, bad))


def lying(lake: Lake) -> tuple[int, int]:
    """How many data files and staged files there are, named by a report or not."""
    return (
        len(list(Path(lake.home.table("raw", "bars")).rglob("*.parquet"))),
        len(list((lake.home.root / "staging").iterdir())),
    )


def test_rows_of_a_group_come_into_one_file_and_quarantine_rows_into_another(lake: Lake) -> None:
    files = {f"{n:02}": text(3, n, "dirt\n" if n % 4 == 0 else "") for n in range(20)}
    source, tasks = landed(lake, **files)
    report = pickle.loads(pickle.dumps(work(lake, source)))(tasks)
    assert (len(report.files), len(report.bad)) == (1, 1)
    good, bad = written(lake, report)
    assert good == Counter({one.load_id: 3 for one in tasks})
    assert bad == Counter({one.load_id: 1 for one in tasks[::4]})
    assert [(c.load_id, c.rows_read, c.rows_raw) for c in report.counts] == [
        (one.load_id, 3 + (n % 4 == 0), 3) for n, one in enumerate(tasks)
    ]
    assert pickle.loads(pickle.dumps(report)) == report


@pytest.mark.parametrize("held", [0, groups._HELD_ROWS])
@pytest.mark.parametrize("number", [1, 3])
def test_nothing_is_left_of_a_file_that_changes_while_it_is_read(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, number: int, held: int
) -> None:
    monkeypatch.setattr(groups, "_HELD_ROWS", held)
    source, tasks = landed(lake, **{f"{n}": text(5, n, "dirt\n") for n in range(number)})
    lake.land("bars", "bars_0.csv", text(4, 50, "more dirt\n"))
    report = work(lake, source)(tasks)
    assert [c.outcome for c in report.counts] == [WAITING, *["ok"] * (number - 1)]
    good, bad = written(lake, report)
    assert good == Counter({one.load_id: 5 for one in tasks[1:]})
    assert bad == Counter({one.load_id: 1 for one in tasks[1:]})
    assert lying(lake) == (len(report.files), len(report.bad))


def test_a_file_that_the_parser_or_the_writer_fails_at_stops_no_other(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, tasks = landed(lake, a=text(3), b=text(4, 10), c=text(5, 20), d=text(6, 30))
    choose, write = parse.choose_format, DataFiles.write

    def chosen(formats, path, head):
        if path == "bars_b.csv":
            raise RuntimeError("nobody foresaw this")
        return choose(formats, path, head)

    def refusing(self, rows: pa.Table) -> None:
        if "load of c" in rows["load_id"].to_pylist():
            raise AuditFailed("a row breaks a rule")
        write(self, rows)

    monkeypatch.setattr(parse, "choose_format", chosen)
    monkeypatch.setattr(DataFiles, "write", refusing)
    report = work(lake, source)(tasks)
    assert [(c.outcome, c.rows_raw, c.whole_file) for c in report.counts] == [
        ("ok", 3, 0), ("parser_error", 0, 1), ("parser_error", 0, 1), ("ok", 6, 0),
    ]  # fmt: skip
    assert [c.reason for c in report.counts[1:3]] == [
        "RuntimeError: nobody foresaw this",
        "AuditFailed: a row breaks a rule",
    ]
    good, bad = written(lake, report)
    assert good == Counter({"load of a": 3, "load of d": 6}) and bad == Counter({"load of b": 1, "load of c": 1})


@pytest.mark.parametrize("chunk", [60, 4 << 20])
def test_a_file_that_is_a_group_may_be_refused_by_the_writer_too(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    """Its last piece is written when the parser has come to its end."""
    source, tasks = landed(lake, a=text(6))
    write, taken = DataFiles.write, []

    def refusing(self, rows: pa.Table) -> None:
        taken.append(len(rows))
        if sum(taken) == 6:
            raise AuditFailed("a row breaks a rule")
        write(self, rows)

    monkeypatch.setattr(DataFiles, "write", refusing)
    monkeypatch.setattr(lines, "CHUNK", chunk)
    report = work(lake, source)(tasks)
    assert (len(taken) > 1) == (chunk == 60) and sum(taken) == 6
    assert [(c.outcome, c.reason, c.rows_raw, c.whole_file) for c in report.counts] == [
        ("parser_error", "AuditFailed: a row breaks a rule", 0, 1)
    ]
    assert written(lake, report) == (Counter(), Counter({"load of a": 1}))
    assert lying(lake) == (0, 1)


@pytest.mark.parametrize("held", [0, groups._HELD_ROWS])
@pytest.mark.parametrize("gathered", [1, 4, 250_000])
@pytest.mark.parametrize(
    ("at", "error"), [(0, AuditFailed("a row breaks a rule")), (3, pa.ArrowInvalid("offset")), (5, AuditFailed("no"))]
)
def test_what_lies_in_raw_is_what_is_counted_wherever_the_writer_refuses(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, held: int, error: Exception, gathered: int, at: int
) -> None:
    """A file in the middle of a group, refused at any of its rows, some before it having been written already."""
    source, tasks = landed(
        lake, a=text(4, 0, "dirt\n"), b="ts,ticker,price,volume\n" + "dirt\n" + text(6, 10)[23:], c=text(5, 20)
    )
    flush = DataFiles._flush

    def refusing(self) -> None:
        volumes = [number for rows in self._gathered for number in rows["volume"].to_pylist()]
        if 10 + at in volumes:
            raise error
        flush(self)

    monkeypatch.setattr(DataFiles, "_flush", refusing)
    monkeypatch.setattr(data_files, "_ROWS_GATHERED", gathered)
    monkeypatch.setattr(groups, "_HELD_ROWS", held)
    monkeypatch.setattr(lines, "CHUNK", 60)
    report = work(lake, source)(tasks)
    assert [(c.outcome, c.rows_read, c.rows_raw, c.rows_quarantined, c.whole_file) for c in report.counts] == [
        ("ok", 5, 4, 1, 0), ("parser_error", 0, 0, 0, 1), ("ok", 5, 5, 0, 0),
    ]  # fmt: skip
    assert str(error) in report.counts[1].reason
    assert written(lake, report) == (
        Counter({"load of a": 4, "load of c": 5}), Counter({"load of a": 1, "load of b": 1})
    )  # fmt: skip
    assert lying(lake) == (len(report.files), len(report.bad))


def test_rows_that_are_written_but_not_counted_are_no_group(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    source, tasks = landed(lake, a=text(3), b=text(4, 10))
    write = DataFiles.write
    monkeypatch.setattr(DataFiles, "write", lambda self, rows: write(self, rows.slice(1)))
    for some, counted in ((tasks, 7), (tasks[:1], 3)):
        with pytest.raises(AuditFailed, match=rf"raw.bars, but {counted} are counted"):
            work(lake, source)(some)


def test_a_full_disk_is_no_fault_of_a_file(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    source, tasks = landed(lake, a=text(3), b=text(4, 10))

    def full(self, rows: pa.Table) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(DataFiles, "write", full)
    for some in (tasks, tasks[:1]):
        with pytest.raises(OSError, match="No space left"):
            work(lake, source)(some)


def test_the_directory_of_an_archive_is_read_once_for_all_its_members(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def packed(start: int) -> bytes:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as out:
            for n in range(40):
                out.writestr(f"bars_{n:02}.csv", text(2, start + n))
        return archive.getvalue()

    opened = []
    real = container._archive
    monkeypatch.setattr(container, "_archive", lambda raw: opened.append(1) or real(raw))
    lake.land("bars", "bars_a.zip", packed(0))
    source = load_sources(lake.home)["bars"]
    tables.ensure_table(lake.home, raw_table(source))
    found = discover(lake.home, source, NOW).files
    tasks = [Task.of(found[path], path) for path in sorted(found)]
    assert len(tasks) == 40 and len(opened) == 2
    report = work(lake, source)(tasks)
    assert {c.rows_raw for c in report.counts} == {2} and len(opened) == 3
    # One that takes its place while it is read is another archive.
    parsed = groups.parse_file

    def replacing(source: Source, task: Task):
        if task is tasks[20]:
            lake.land("bars", "bars_a.zip", packed(100))
        return parsed(source, task)

    monkeypatch.setattr(groups, "parse_file", replacing)
    report = work(lake, source)(tasks)
    assert [c.outcome for c in report.counts] == ["ok"] * 20 + [WAITING] * 20 and len(opened) == 5
