"""A verb that meets a damaged table names the table, the file and what fixes it, and exits with 5."""

from __future__ import annotations

import pytest

from chainlake.cli.main import main
from chainlake.paths import Home
from tests.check import damages, lakes

pytestmark = pytest.mark.slow

ACTS = {one.name: one for one in damages.ALL}
DETECT = ["detect", "lab", "2025-03-01", "2025-03-05"]
INGEST = ["ingest", "lab", "2025-03-01", "2025-03-05"]
SQL = ["sql", "SELECT count(*), min(ts), sum(x), max(y), max(kind_) FROM (SELECT *, type AS kind_ FROM events.lab)"]
MATCHES = ["sql", "SELECT * FROM matches.many"]

#: Damage → a verb that meets it, and words for the file.
MET = [
    ("data_file_of_matches_deleted", ["sql", "SELECT * FROM matches.rise"], ".parquet"),
    ("data_file_of_notes_deleted", ["status"], ".parquet"),
    ("footer_of_matches_flipped", MATCHES, ".parquet"),
    ("last_log_entry_truncated", ["sql", "SELECT * FROM matches.rise"], ".json"),
    ("last_log_entry_truncated", ["changes", "matches.rise", "--since-version", "0"], ".json"),
    ("last_log_entry_truncated", ["maintain"], ".json"),
    ("last_log_entry_emptied", ["sql", "SELECT * FROM events.lab"], ".json"),
    ("last_log_entry_emptied", INGEST, ".json"),
    ("log_entry_removed_from_the_middle", MATCHES, ".json"),
    ("log_entry_of_notes_truncated", DETECT, ".json"),
    ("log_entry_of_notes_truncated", ["status"], ".json"),
    ("log_entry_truncated_in_the_middle", INGEST, ".json"),
    ("checkpoint_truncated", ["sql", "SELECT * FROM raw.lab"], ".checkpoint.parquet"),
    ("hint_is_garbage", ["sql", "SELECT * FROM models.changes"], "_last_checkpoint"),
]


@pytest.mark.parametrize(("name", "words", "file"), MET, ids=[f"{name}-{words[0]}" for name, words, _ in MET])
def test_verb_names_table_file_and_repair(
    named: Home, capsys: pytest.CaptureFixture[str], name: str, words: list[str], file: str
) -> None:
    damage = ACTS[name]
    damage.act(named)
    capsys.readouterr()
    assert main(words) == 5
    said = capsys.readouterr().err
    assert f"table {damage.table} is damaged" in said and file in said, said
    assert f"chainlake check --table {damage.table} --repair" in said
    assert "unexpected" not in said and "Traceback" not in said


def test_an_error_of_another_kind_is_told_as_ever(named: Home, capsys: pytest.CaptureFixture[str]) -> None:
    ACTS["data_file_of_matches_deleted"].act(named)
    capsys.readouterr()
    assert main(["sql", "SELECT nothing FROM events.lab"]) == 2
    assert "no column nothing" in capsys.readouterr().err


def test_status_shows_what_others_have_done(named: Home, capsys: pytest.CaptureFixture[str]) -> None:
    def status() -> str:
        capsys.readouterr()
        assert main(["status"]) == 0
        return capsys.readouterr().out

    assert "suspect" not in status() and "stale" not in status()
    ACTS["foreign_optimize"].act(named)
    assert "suspect" not in status()
    ACTS["matches_deleted"].act(named)
    ACTS["match_table_dropped"].act(named)
    said = status()
    (line,) = [one for one in said.splitlines() if one.startswith("pattern/rise")]
    assert "suspect" in line and "(DELETE, " in line and "chainlake check" in line
    (line,) = [one for one in said.splitlines() if one.startswith("pattern/many")]
    assert "stale" in line and "its table matches.many is gone" in line

    assert main(["check", "--repair"]) == 1
    out = capsys.readouterr().out
    assert "now run:" in out and "chainlake restate --source lab" in out
    lakes.repaired(named)
    assert "suspect" not in status() and "stale" not in status()


def test_check_says_what_it_found_and_exits_with_it(named: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 0
    assert "14 tables" in capsys.readouterr().out
    ACTS["events_updated"].act(named)
    result = named.root / "result.json"
    assert main(["check", "--table", "events.lab", "--result", str(result)]) == 1
    out = capsys.readouterr().out
    assert "damaged: events.lab: 2025-03-03: 12 events, as ingested, but with other values" in out
    assert "note: events.lab: version 5 (UPDATE, " in out
    assert '"damaged": 1' in result.read_text() and "events.lab" in result.read_text()
    assert main(["check", "--quick"]) == 0
    assert main(["check", "2025-03-04", "2025-03-05"]) == 0
    assert main(["check", "--table", "events.nothing"]) == 2
    assert main(["check", "--quick", "--repair"]) == 2
