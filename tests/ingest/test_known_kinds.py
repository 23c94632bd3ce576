"""A kind of format is a line of one table and what reads its lines: what else goes by the kind asks these two."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pytest

from chainlake.cli.main import main
from chainlake.definitions.formats.format import Format
from chainlake.definitions.formats.kinds import KINDS, Kind
from chainlake.definitions.source import load_source
from chainlake.definitions.yaml_lines import read_yaml
from chainlake.errors import DefinitionError
from chainlake.ingest.rows.lines import BadLine, Block
from chainlake.ingest.rows.text_columns import READERS, Texts
from chainlake.starter.editors.schemas import source_schema
from tests.ingest.test_parse import Parsed

SOURCE = """\
key: ticker
type: Quote
attributes: {price: {type: double, min: 0}, size: {type: long}}
formats:
  - kind: json_lines
    time: {column: time, format: iso}
    map: {price: px}
    optional: [size]
"""
LINES = """\
{"time": "2025-01-01T10:00:00", "ticker": "IBM", "px": 182.9, "size": 7}
not an object
{"time": "2025-01-01T10:01:00", "ticker": "AIG", "px": -1}
{"time": "2025-01-01T10:02:00", "ticker": "AIG", "px": 60.5, "more": true}
"""


@pytest.fixture(autouse=True)
def with_json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """``json_lines``, an object per line, as somebody would add it: a line, and its reader."""

    def read(block: Block, form: Format, header: list[str], key: str) -> Texts:
        found, lines, numbers, bad = [], [], [], list(block.bad)
        for line, number in zip(block.lines, block.numbers.tolist(), strict=True):
            try:
                found.append(json.loads(line))
            except ValueError:
                bad.append(BadLine(number, "bad_json", line.decode()))
                continue
            lines.append(line)
            numbers.append(number)
        columns = {
            name: pa.array([str(one[name]) if name in one else None for one in found], pa.string()) for name in header
        }
        rows = len(found)
        return Texts(columns, np.array(numbers, np.int64), np.zeros(rows, np.int64), lines, np.arange(rows), bad)

    unread = ("header", "delimiter", "quote", "columns", "short_rows", "unpivot")
    monkeypatch.setitem(KINDS, "json_lines", Kind(cells=False, unread=unread))
    monkeypatch.setitem(READERS, "json_lines", read)


def test_files_of_another_kind_are_read_and_their_bad_lines_set_aside(tmp_path: Path) -> None:
    found = Parsed(tmp_path, SOURCE, **{"a.jsonl": LINES})
    rows = [(row["line"], row["ticker"], row["price"], row["size"]) for row in found.rows]
    assert rows == [(1, "IBM", 182.9, 7), (4, "AIG", 60.5, None)]
    assert sorted((line, reason) for line, reason, *_ in found.bad) == [(2, "bad_json"), (3, "out_of_range")]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("optional: [size]", "delimiter: ;", "'delimiter' has no meaning for a json_lines"),
        ("optional: [size]", "optional: [volume]", "'volume' is a column that this format does not read"),
        ("time: {column: time, format: iso}", "time: {format: iso}", "'time.column' is missing"),
    ],
)
def test_what_another_kind_does_not_read_is_refused(old: str, new: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(SOURCE.replace(old, new))
    with pytest.raises(DefinitionError) as caught:
        load_source(file)
    assert says in caught.value.what


def test_another_kind_is_known_to_editors_and_to_lint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft202012Validator(source_schema()).validate(read_yaml(SOURCE).data)
    file, landed = tmp_path / "mine.yaml", tmp_path / "a.jsonl"
    file.write_text(SOURCE)
    landed.write_text(LINES)
    code = main(["lint", str(file), "--on", str(landed)])
    said = capsys.readouterr().out
    assert code == 0 and "2 rows of 4 would go to quarantine" in said, said
