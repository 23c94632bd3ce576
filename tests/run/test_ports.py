"""Which back ends a step gets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chainlake.errors import UsageError
from chainlake.paths import Home
from chainlake.run.ports import open_ports


@pytest.mark.parametrize(
    ("asked", "lake", "wanted"),
    [
        (None, None, "files"),
        ("", None, "files"),
        ("auto", None, "files"),
        ("files", None, "files"),
        ("spark", None, "spark"),
        ("auto", "file:///store/lake", "files"),
        ("files", "file:///store/lake", "files"),
    ],
)
def test_the_lake_is_read_by_its_files_where_they_can_be_read(
    home: Home, monkeypatch: pytest.MonkeyPatch, asked: str | None, lake: str | None, wanted: str
) -> None:
    if asked is not None:
        monkeypatch.setenv("CHAINLAKE_ENGINE", asked)
    assert open_ports(replace(home, lake=lake or home.lake), "t").lake.name == wanted


@pytest.mark.parametrize(
    ("asked", "lake", "message"),
    [
        ("Files", None, "CHAINLAKE_ENGINE is 'Files'.*auto, files or spark"),
        ("spark", "s3://bucket/lake", "s3://bucket/lake is in an object store.*without regard"),
    ],
)
def test_an_engine_that_cannot_be_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch, asked: str, lake: str | None, message: str
) -> None:
    monkeypatch.setenv("CHAINLAKE_ENGINE", asked)
    with pytest.raises(UsageError, match=f"(?s){message}"):
        open_ports(replace(home, lake=lake or home.lake), "t")
