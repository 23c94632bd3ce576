"""The lake's port by each of its back ends."""

from __future__ import annotations

import pytest

from chainlake.lake.store.files import FilesLake
from chainlake.lake.store.port import Lake
from chainlake.paths import Home


@pytest.fixture(params=["files", "objects", pytest.param("spark", marks=pytest.mark.spark)])
def lake(request: pytest.FixtureRequest, home: Home) -> Lake:
    if request.param == "objects":
        if "spark" in request.fixturenames:
            pytest.skip("what Spark reads of files is the same, whoever wrote them")
        # The same installation, its lake in a folder that is read and written as a store is.
        object.__setattr__(home, "lake", f"file://{home.lake}")
    if request.param != "spark":
        return FilesLake(home)
    from chainlake.lake.store.spark import SparkLake

    session = request.getfixturevalue("spark")
    return SparkLake(home, lambda: session)
