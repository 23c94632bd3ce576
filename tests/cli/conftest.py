"""A project of one's own: a configuration that is nobody else's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chainlake.paths import PROJECT, Home

SHIPPED = PROJECT / "dags" / "config"


@pytest.fixture
def project(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shipped sources, one pattern and one model, in a folder that may be written to."""
    config = tmp_path / "my config"
    shutil.copytree(SHIPPED / "sources", config / "sources")
    for name in ("patterns/shakeout.sase", "models/i5n_speed_profile.yaml", "models/bac_beta.yaml"):
        (config / name).parent.mkdir(exist_ok=True)
        shutil.copy(SHIPPED / name, config / name)
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(config))
    return config
