"""Some damaged files of the fuzz test, the same at each run."""

from __future__ import annotations

import pytest

from chainlake.ingest.rows import parse
from chainlake.ingest.rows import text_columns as tables
from tests.ingest import mutations

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("first", [0, 1_000_000])
def test_damage_to_a_line_is_noticed_by_no_other(tmp_path, first):
    for seed in range(first, first + 40):
        wrong = mutations.run(seed, tmp_path)
        assert wrong is None, f"file seed {seed}: {wrong}"


def test_the_laws_find_a_parser_that_loses_a_line(tmp_path, monkeypatch):
    # Rows that are counted, but not compared with the lines: what an open quote swallows is gone.
    monkeypatch.setattr(tables, "_broken", lambda lines, form: {})
    assert any(mutations.run(seed, tmp_path) for seed in range(60))


def test_the_laws_find_a_parser_that_counts_a_line_twice(tmp_path, monkeypatch):
    real = parse._Parser._bad_lines
    monkeypatch.setattr(parse._Parser, "_bad_lines", lambda self, bad, *, counted: real(self, bad * 2, counted=counted))
    assert any(mutations.run(seed, tmp_path) for seed in range(30))
