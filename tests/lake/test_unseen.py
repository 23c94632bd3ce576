"""A commit of files that the committing process does not see is refused, whichever way they were told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainlake.lake.delta import tables
from chainlake.lake.delta.data_files import DataFile, DataFiles
from chainlake.lake.store import delta_commits
from chainlake.lake.store.errors import FilesNotVisible
from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.port import Part, Staged, Turn
from chainlake.paths import Home
from chainlake.schemas.table import Column, Table

TABLE = Table(
    schema="matches",
    name="rows",
    comment="For tests.",
    key=("id",),
    columns=(Column("id", pa.string(), "Which.", False),),
)
ROWS = pa.table({"id": ["a", "b"]})


@pytest.fixture(params=["", "file://"])
def lake(request: pytest.FixtureRequest, home: Home) -> FilesLake:
    return FilesLake(replace(home, lake=f"{request.param}{home.lake}"))


def written(lake: FilesLake) -> DataFile:
    """A data file that a task wrote."""
    with DataFiles(lake.task_folder(TABLE), TABLE) as out:
        out.write(ROWS)
        (file,) = out.close()
    return file


@pytest.mark.parametrize("one_by_one", [8, 0])
def test_a_data_file_that_is_not_there_in_its_size_is_not_committed(
    lake: FilesLake, home: Home, monkeypatch: pytest.MonkeyPatch, one_by_one: int
) -> None:
    monkeypatch.setattr(delta_commits, "_ASKED_ONE_BY_ONE", one_by_one)
    tables.ensure_table(lake.home, TABLE)
    first = written(lake)
    assert lake.commit(lake.additions(TABLE, [first]), Turn("t")).version == 1
    short, gone = written(lake), written(lake)
    change = lake.additions(TABLE, [replace(short, size=short.size + 1)])
    with pytest.raises(
        FilesNotVisible, match=rf"{short.path}, which has {short.size} bytes, but its writer reported {short.size + 1}"
    ):
        lake.commit(change, Turn("t"))
    change = lake.additions(TABLE, [gone])
    Path(home.lake.removeprefix("file://"), "matches", "rows", gone.path).unlink()
    with pytest.raises(FilesNotVisible, match=rf"{gone.path}, which is not there .*nothing was committed"):
        lake.commit(change, Turn("t"))
    assert tables.version(lake.home, "matches", "rows") == 1 and len(tables.arrow(lake.home, "matches", "rows")) == 2


def test_a_staged_file_that_is_not_there_is_not_taken(lake: FilesLake, tmp_path: Path) -> None:
    path = tmp_path / "staged.parquet"
    with pytest.raises(FilesNotVisible, match="is not there for this process"):
        lake.change(TABLE, Staged((str(path),)), Part([[]]))
    pq.write_table(ROWS, path, store_schema=False)
    change = lake.change(TABLE, Staged((str(path),)), Part([[]]))
    path.unlink()
    with pytest.raises(FilesNotVisible, match=r"staged\.parquet"):
        lake.commit(change, Turn("t"))
    assert tables.version(lake.home, "matches", "rows") == 0
