"""What a path says: date and revision, and what in it cannot be stored."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chainlake.definitions.source import load_source
from chainlake.ingest.path_fields import HIGHEST, path_fields
from tests.ingest.test_discovery import YAML


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the source of a test lies."""
    return tmp_path / "x.yaml"


@pytest.mark.parametrize(
    ("path", "file_date", "revision", "problem"),
    [
        (f"20250101_r{HIGHEST}", date(2025, 1, 1), HIGHEST, ""),
        (f"20250101_r{HIGHEST + 1}", date(2025, 1, 1), HIGHEST, "bad_path_revision"),
        ("20250101_r" + "9" * 200, date(2025, 1, 1), HIGHEST, "bad_path_revision"),
        ("20251301_r2", None, 2, "bad_path_date"),
        ("00010101", None, 0, "bad_path_date"),
        ("99991231", None, 0, "bad_path_date"),
        ("0000" + "0" * 300, None, 0, "bad_path_date"),
    ],
)
def test_dates_and_revisions_that_cannot_be_stored(file, path, file_date, revision, problem):
    file.write_text(YAML + "zone: Asia/Tokyo\n")
    found = path_fields(load_source(file), path)
    assert (found.file_date, found.revision, found.problem) == (file_date, revision, problem)
    assert bool(found.detail) == bool(problem)


@pytest.mark.parametrize(
    ("path", "date_format", "file_date"),
    [
        ("b_2024-01-11", "", date(2024, 1, 11)),
        ("b_2024-1-11", "", None),
        ("b_2024-11-1", "", None),
        ("b_2024111", "", None),
        ("b_11012024", "%d%m%Y", date(2024, 1, 11)),
        ("b_1112024", "%d%m%Y", None),
        ("b_11124", "%d%m%y", None),
        ("b_2024111", "%Y%j", date(2024, 4, 20)),
        ("b_202411", "%Y%j", None),
        # A sign between its parts leaves one reading only.
        ("b_1-2-2024", "%d-%m-%Y", date(2024, 2, 1)),
        ("b_2024_1_11", "%Y_%m_%d", date(2024, 1, 11)),
        # A day that its year does not have.
        ("b_2023-366", "%Y-%j", None),
        ("b_2020-53-5", "%G-%V-%u", date(2021, 1, 1)),
        ("b_2023-53-5", "%G-%V-%u", None),
        # A weekday that its date is not.
        ("b_thu-11-01-2024", "%a-%d-%m-%Y", date(2024, 1, 11)),
        ("b_fri-11-01-2024", "%a-%d-%m-%Y", None),
        ("b_2024-01-11-11", "%Y-%m-%d-%j", date(2024, 1, 11)),
        ("b_2024-01-11-12", "%Y-%m-%d-%j", None),
    ],
)
def test_a_date_with_too_few_digits_is_not_read_as_another_day(file, path, date_format, file_date):
    rule = f"path: {{pattern: 'b_(?P<date>[-_0-9a-z]+)', date_format: '{date_format}'}}\n"
    rule = rule if date_format else "path: 'b_(?P<date>[-_0-9]+)'\n"
    file.write_text("".join(rule if "path:" in x else x for x in YAML.splitlines(keepends=True)))
    found = path_fields(load_source(file), path)
    assert (found.file_date, found.problem) == (file_date, "" if file_date else "bad_path_date")


@pytest.mark.parametrize(
    ("revision", "wanted"),
    [
        ("7", 7), ("007", 7), ("0", 0), ("", 0), ("0" * 5000 + "2", 2), (f"000{HIGHEST}", HIGHEST),
        ("1.10", None), ("2.0", None), ("1-2", None), ("v3", None), ("-3", None), ("a", None), ("9" * 5000, None),
    ],
)  # fmt: skip
def test_a_revision_is_plain_digits(file, revision, wanted):
    file.write_text(YAML.replace("(?:_r(?P<revision>\\d+))?", "(?:_r(?P<revision>.*))?"))
    found = path_fields(load_source(file), f"20250101_r{revision}")
    problem = "bad_path_revision" if wanted is None else ""
    assert (found.revision, found.problem) == (HIGHEST if wanted is None else wanted, problem)
    assert bool(found.detail) == bool(problem) and len(found.detail) < 200
