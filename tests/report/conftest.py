"""The lake of ``lab`` with its report, made once; each test works on a copy of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chainlake.paths import Home
from chainlake.quality.audit import Audit
from chainlake.report.make import make_report
from chainlake.run import ports
from chainlake.run.tasks import LocalTasks
from tests.report import lab


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The lake with all its pages; nobody changes it."""
    root = tmp_path_factory.mktemp("report lake")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHAINLAKE_HOME", str(root))
        patch.setattr(ports, "SparkTasks", lambda home, app, long_running: LocalTasks())
        patch.setattr(Audit, "build_docs", lambda audit: audit.home.docs / "index.html")
        home = lab.make(root, Home.from_env())
        make_report(home)
    yield home


@pytest.fixture
def own(reported: Home, home: Home) -> Home:
    """A copy of it."""
    shutil.copytree(reported.root, home.root, dirs_exist_ok=True)
    return replace(home, config=home.root / "config")


def pages(home: Home) -> dict[str, Path]:
    """The pages of a report by their paths in it."""
    folder = home.root / "report"
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*.html"))}
