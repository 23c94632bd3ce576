"""Sources for ``match`` on landed files."""

from __future__ import annotations

from pathlib import Path

import pytest


def with_plant(folder: Path, monkeypatch: pytest.MonkeyPatch, more: str = "") -> None:
    """Make ``folder`` a home with the source ``plant``, whose files have the columns k, t and x; ``more``: its keys."""
    monkeypatch.setenv("CHAINLAKE_HOME", str(folder))
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(folder / "config"))
    (folder / "config" / "sources").mkdir(parents=True)
    (folder / "config" / "sources" / "plant.yaml").write_text(
        f"key: k\ntype: A\nattributes: {{x: {{type: double}}}}\n{more}"
        "formats: [{name: f, glob: '*.csv', header: [k, x], time: {column: t, format: epoch_s}}]\n"
    )
