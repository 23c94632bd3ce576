"""Each word of ``on_conflict`` says which of several rows of one event gives it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chainlake.definitions.source import load_source
from chainlake.definitions.source_keys import CONFLICTS
from chainlake.ingest.events.fates import decide

TEXT = """\
key: k
type: T
attributes: {v: {type: double}}
formats:
  - {glob: '*', time: {column: t}}
"""
#: Of rows at one place with the contents 5, 5 and 7: which give an event, and which conflict.
DECIDED = {
    "first": ([True, False, False], [False, False, True]),
    "latest": ([False, False, True], [True, True, False]),
    "quarantine_all": ([False, False, False], [True, True, True]),
}


@pytest.mark.parametrize("word", CONFLICTS)
def test_rows_of_one_event(word: str, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(f"{TEXT}on_conflict: {word}\n")
    place, content = np.zeros(3, np.int64), np.array([5, 5, 7])
    found = decide(load_source(file), place, content, np.arange(3))
    assert (found.event.tolist(), found.conflict.tolist()) == DECIDED[word]
