"""A home with one source and one model, and ports of this process."""

from __future__ import annotations

import dataclasses

import pytest

from chainlake.lake.store.files import FilesLake
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from tests.steps.history import MODEL, SOURCE


@pytest.fixture
def lab(home, monkeypatch):
    """A home whose configuration is one source and one model."""
    config = home.root / "config"
    for name, text in (("sources/lab.yaml", SOURCE), ("models/slope.yaml", MODEL)):
        (config / name).parent.mkdir(parents=True, exist_ok=True)
        (config / name).write_text(text)
    return dataclasses.replace(home, config=config)


@pytest.fixture
def here(lab):
    """Work in this process, on the files."""
    return Ports(LocalTasks(), FilesLake(lab))
