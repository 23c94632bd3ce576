"""The gate of ingest on pandas rows, the templates, and Data Docs: no Spark here."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from chainlake.errors import AuditFailed, DefinitionError, UsageError
from chainlake.paths import PROJECT, Home
from chainlake.quality import Audit, audit_accounting
from chainlake.quality import docs as site
from chainlake.quality import templates as suites

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pages")]

FILE = {
    "source": "s", "path": "a.csv", "file_id": "f", "load_id": "l", "rows_read": 5, "rows_raw": 4,
    "rows_quarantined": 1,
}  # fmt: skip
DAY = {
    "source": "s", "day": date(2013, 10, 7), "status": "complete", "rows": 2, "duplicates": 1, "conflicts": 1,
    "superseded": 0, "checksum": "2-ab", "rows_raw": 4,
}  # fmt: skip
OTHER_FILE = {**FILE, "path": "b.csv"}
OTHER_DAY = {**DAY, "day": date(2013, 10, 8)}


@pytest.fixture
def audit(home: Home) -> Audit:
    return Audit(home)


def test_rows_that_add_up_pass(audit: Audit) -> None:
    assert audit_accounting(audit, [FILE, OTHER_FILE], [DAY, OTHER_DAY]) is None
    assert audit_accounting(audit, [], []) is None
    empty = {**OTHER_DAY, "rows": 0, "duplicates": 0, "conflicts": 0, "rows_raw": 0}
    assert audit_accounting(audit, [], [DAY, empty]) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"path": "b.csv"}, "a path is listed once"),
        ({"file_id": None}, "every file has an id"),
        ({"load_id": None}, "every file names the load"),
        ({"rows_raw": None}, "every file has its rows counted"),
        ({"rows_raw": 6, "rows_quarantined": -1}, "no row count of a file is negative"),
        ({"rows_raw": 3}, "rows_read = rows_raw + rows_quarantined"),
    ],
)
def test_each_broken_file_is_found(audit: Audit, change: dict[str, Any], words: str) -> None:
    reason = audit_accounting(audit, [{**FILE, **change}, OTHER_FILE], [DAY])
    assert reason is not None and words in reason and f"path={change.get('path', 'a.csv')}" in reason


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"day": date(2013, 10, 8)}, "a day is listed once"),
        ({"status": "changing"}, "every day has a final status"),
        ({"checksum": None}, "every day has a checksum"),
        ({"rows_raw": None}, "every day has its rows counted"),
        ({"duplicates": None}, "every day has its rows counted"),
        ({"rows": 4, "duplicates": -1}, "no row count of a day is negative"),
        ({"superseded": 1}, "raw rows = events + duplicates + conflicts + superseded"),
    ],
)
def test_each_broken_day_is_found(audit: Audit, change: dict[str, Any], words: str) -> None:
    reason = audit_accounting(audit, [FILE], [{**DAY, **change}, OTHER_DAY])
    assert reason is not None and words in reason and f"day={change.get('day', DAY['day'])}" in reason


def test_rows_of_two_sources_are_refused(audit: Audit) -> None:
    with pytest.raises(UsageError, match="source by source"):
        audit_accounting(audit, [FILE, {**OTHER_FILE, "source": "t"}], [])
    frame = pd.DataFrame([{**FILE, "source": "t", "rows_unaccounted": 0, "least_count": 0}])
    failed = audit.run(suites.instantiate("accounting_files", {"source": "s"}), frame, "label")
    assert "of the source that was ingested" in str(failed.reason)


def test_docs_show_results_of_all_applications(home: Home) -> None:
    """Several applications at once, each with its own audit: nothing is lost, the first page lists all."""

    code = "from tests.quality.test_accounting_gate import Home, one; one(Home.from_env(), 7)"
    other = subprocess.Popen([sys.executable, "-c", code], cwd=PROJECT)
    audit = Audit(home)
    assert audit_accounting(audit, [{**FILE, "rows_read": 99, "source": "s0"}], []) is not None
    page = audit.build_docs()
    assert other.wait() == 0
    assert page == home.docs / "index.html"
    text = page.read_text()
    assert "accounting.files.s0" in text and "accounting.files.s7" in text
    html = list((home.docs / "validations").rglob("*.html"))
    assert len(html) == 2
    assert any("rows_read = rows_raw + rows_quarantined in every file" in page.read_text() for page in html)


def one(home: Home, number: int) -> Path:
    """What an application of its own process does in the test above."""
    audit = Audit(home)
    assert audit_accounting(audit, [{**FILE, "source": f"s{number}"}], []) is None
    return audit.build_docs()


def test_docs_keep_a_limited_number_of_results(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "KEEP", 2)
    audit = Audit(home)
    for number in range(3):
        audit_accounting(audit, [{**FILE, "source": f"s{number}"}], [])
        page = audit.build_docs()
    assert "accounting.files.s2" in page.read_text() and len(list((home.docs / "validations").rglob("*.html"))) == 2


def test_a_failed_audit_as_an_error_names_reason_and_docs(audit: Audit) -> None:
    frame = pd.DataFrame([{**FILE, "rows_unaccounted": 3, "least_count": 0}])
    with pytest.raises(AuditFailed) as raised:
        audit.check(audit.run(suites.instantiate("accounting_files", {"source": "s"}), frame, "label"))
    assert "rows_read = rows_raw" in raised.value.summary and "index.html" in raised.value.summary


def test_every_expectation_says_what_it_means() -> None:
    for path in sorted(suites.FOLDER.glob("*.json")):
        for expectation in json.loads(path.read_text())["expectations"]:
            assert expectation["description"], path


def test_templates_are_filled_with_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "FOLDER", tmp_path)
    (tmp_path / "t.json").write_text('{"name": "x.$who", "list": ["$n", {"deep": "$names"}], "plain": 1}')
    filled = suites.instantiate("t", {"who": "me", "n": 5, "names": ["a"]})
    assert filled == {"name": "x.me", "list": [5, {"deep": ["a"]}], "plain": 1}
    with pytest.raises(UsageError, match="names"):
        suites.instantiate("t", {"who": "me", "n": 5})
    with pytest.raises(UsageError, match="no suite template 'u'"):
        suites.instantiate("u", {})
    (tmp_path / "t.json").write_text("{")
    with pytest.raises(DefinitionError, match="not JSON"):
        suites.instantiate("t", {})


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, chainlake.quality; sys.exit(bool({'great_expectations', 'pyspark', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=False).returncode == 0
