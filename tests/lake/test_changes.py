"""The change feed: exactly what was added, withdrawn and changed, and what is said when more is asked than is kept."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from chainlake.cli.main import main
from chainlake.errors import UsageError
from chainlake.lake.commits.changes import changes, parse_moment
from chainlake.lake.delta import tables
from chainlake.lake.records import ops
from chainlake.paths import Home
from tests.lake.test_publish import D1, D2, D3, definition, match, publish

if TYPE_CHECKING:
    pass


def fed(home: Home, since: int | datetime, name: str = "matches.p") -> list[tuple[str, int, int]]:
    rows = changes(home, name, since).rows
    return [(r["change"], int(r["match_id"], 16), r["version"]) for r in rows.to_pylist()]


@pytest.mark.slow
def test_the_feed_holds_the_differences_and_nothing_else(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(home, [match(1, D1), match(2, D1), match(3, D2)], [D1, D2])
    # Found again, changed, withdrawn, new, and one that moves to another day.
    publish(home, [match(1, D1), match(2, D1, key="other"), match(4, D2), match(3, D3)], [D1, D2, D3])
    wanted = [("added", 3, 2), ("added", 4, 2), ("changed", 2, 2), ("withdrawn", 3, 2)]
    assert fed(home, 1) == wanted and fed(home, 2) == []
    assert fed(home, 0) == [("added", 1, 1), ("added", 2, 1), ("added", 3, 1), *wanted]
    # Nothing differs: no new version.
    publish(home, [match(1, D1), match(2, D1, key="other"), match(4, D2), match(3, D3)], [D1, D2, D3])
    assert tables.version(home, "matches", "p") == 2
    # Only an attempt that may still commit is fenced off by an empty version.
    row = {"definition": "pattern/p", "day": D1, "table_name": definition().table_name, "definition_hash": "h",
           "engine_version": 1, "input_fingerprint": "f", "status": "publishing"}  # fmt: skip
    ops.append(home, "intervals", [row], "dead")
    publish(home, [match(1, D1), match(2, D1, key="other")], [D1])
    assert tables.version(home, "matches", "p") == 3
    assert fed(home, 2) == []

    monkeypatch.setenv("CHAINLAKE_HOME", str(home.root))
    assert main(["changes", "matches.p", "--since-version", "1", "--format", "json"]) == 0
    out = capsys.readouterr()
    shown = json.loads(out.out)
    assert [(r["change"], int(r["match_id"], 16)) for r in shown] == [w[:2] for w in wanted]
    assert shown[2]["a"]["key"] == "other" and "version 3" in out.err


@pytest.fixture
def small(home: Home) -> Home:
    """A match table with four versions, made without Spark."""
    import pyarrow as pa

    from tests.lake.appending import append_arrow
    from tests.lake.test_publish import TABLE

    tables.ensure_table(home, TABLE)
    for number in range(1, 4):
        rows = pa.Table.from_pylist([match(number, D1)], schema=TABLE.arrow())
        append_arrow(home, TABLE, rows, app="p", base_version=number - 1, mark="m")
    return home


def test_since_a_moment(small: Home) -> None:
    times = [row["committed_at"] for row in changes(small, "matches.p", 0).rows.to_pylist()]
    assert fed(small, times[0]) == [("added", 2, 2), ("added", 3, 3)]
    assert fed(small, times[0] - timedelta(milliseconds=1))[0] == ("added", 1, 1)
    assert fed(small, datetime.now(UTC) + timedelta(hours=1)) == []
    assert parse_moment("2025-10-02") == datetime(2025, 10, 2, tzinfo=UTC)
    assert parse_moment("2025-10-02T08:00:00+02:00") == datetime(2025, 10, 2, 6, tzinfo=UTC)
    for text in ("yesterday", "7", "²"):
        with pytest.raises(UsageError, match="is not a time"):
            parse_moment(text)


def test_the_command_tells_versions_and_commits_apart(small: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """``--since 2025-10-02`` could be meant for the events of a day: the words of the options leave no doubt."""
    with pytest.raises(SystemExit) as ended:
        main(["changes", "matches.p", "--since", "2025-10-02"])
    assert ended.value.code == 2 and "--since-version, --since-commit" in capsys.readouterr().err
    assert main(["changes", "matches.p", "--since-commit", "2999-01-01", "--format", "csv"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("change,version,committed_at,") and rows == []


@pytest.mark.few(1)
@pytest.mark.parametrize("what", ["log", "file"])
def test_more_than_is_kept(small: Home, what: str) -> None:
    folder = Path(small.table("matches", "p"))
    log = folder / "_delta_log" / f"{2:020}.json"
    if what == "file":
        (added,) = [json.loads(line)["add"]["path"] for line in log.read_text().splitlines() if '"add"' in line]
        (folder / added).unlink()
    else:
        DeltaTable(str(folder)).create_checkpoint()
        for version in range(3):
            (folder / "_delta_log" / f"{version:020}.json").unlink()
    assert fed(small, 2) == [("added", 3, 3)]
    for since in (1, datetime(2025, 1, 1, tzinfo=UTC)):
        with pytest.raises(UsageError, match=r"kept from version 3 \(.*Z\) to 3") as caught:
            changes(small, "matches.p", since)
        assert "--since-version 2" in str(caught.value.hint)


def test_a_compaction_changes_nothing(small: Home) -> None:
    table = DeltaTable(small.table("matches", "p"))
    assert table.optimize.compact()["numFilesRemoved"] == 3 and table.version() == 4
    assert fed(small, 3) == [] and fed(small, 0) == [("added", n, n) for n in (1, 2, 3)]


def test_what_has_no_feed(small: Home) -> None:
    ops.append(small, "rates", [{"source": "s", "day": D1, "type": "T", "key": "k", "events": 1}], "r")
    for name, says in (
        ("ops.rates", "keeps no change feed\nhint: All tables except those of ops do"),
        ("matches.q", "no table matches.q\nhint: Did you mean matches.p\\? 'chainlake sql' lists"),
        ("p", "names no table"),
    ):
        with pytest.raises(UsageError, match=says):
            changes(small, name, 0)
    with pytest.raises(UsageError, match="no version 9 yet"):
        changes(small, "matches.p", 9)
