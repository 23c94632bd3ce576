"""Where things lie (design §2): everything a run writes is under ``CHAINLAKE_HOME`` and the cache."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from jobs.errors import InfrastructureError

#: The project folder: the one that holds ``jobs/``, ``schemas/`` and ``dags/``.
PROJECT = Path(__file__).resolve().parent.parent


def _folder(variable: str, default: Path) -> Path:
    return Path(os.environ.get(variable) or default).expanduser().absolute()


@dataclass(frozen=True)
class Home:
    """The folders of one Chainlake installation.

    Args:
        root: ``CHAINLAKE_HOME``, default ``.chainlake`` in the project folder.
        lake: URI or path of the Delta tables; ``CHAINLAKE_LAKE``, default ``<root>/lake``.
        config: folder with ``sources/``, ``patterns/`` and ``models/``; ``CHAINLAKE_CONFIG``, default ``dags/config``.
        cache: downloaded JARs and other things a later run uses; ``CHAINLAKE_CACHE``, default ``~/.cache/chainlake``.
    """

    root: Path
    lake: str
    config: Path
    cache: Path

    @classmethod
    def from_env(cls) -> Home:
        """The home that the environment variables name.

        Raises:
            InfrastructureError: ``CHAINLAKE_HOME`` cannot be a folder, since it is a file or lies below one.
        """
        root = _folder("CHAINLAKE_HOME", PROJECT / ".chainlake")
        there = next((path for path in (root, *root.parents) if path.exists()), root)
        if not there.is_dir():
            raise InfrastructureError(
                f"{there} is a file, and CHAINLAKE_HOME is {root}", hint="Set CHAINLAKE_HOME to a folder."
            )
        return cls(
            root=root,
            lake=os.environ.get("CHAINLAKE_LAKE") or str(root / "lake"),
            config=_folder("CHAINLAKE_CONFIG", PROJECT / "dags" / "config"),
            cache=_folder("CHAINLAKE_CACHE", Path.home() / ".cache" / "chainlake"),
        )

    def landing(self, source: str) -> Path:
        """The folder into which files of ``source`` are delivered."""
        return self.root / "landing" / source

    def table(self, schema: str, name: str) -> str:
        """Path or URI of the Delta table ``schema.name``."""
        return f"{self.lake}/{schema}/{name}"

    @property
    def staging(self) -> str:
        """Path or URI under which attempts stage their output, each in a folder of its own."""
        return f"{os.path.dirname(self.lake.rstrip('/'))}/staging"

    @property
    def docs(self) -> Path:
        """Data Docs."""
        return self.root / "docs"

    @property
    def airflow(self) -> Path:
        """``AIRFLOW_HOME``: configuration, logs, the embedded database."""
        return self.root / "airflow"

    @property
    def locks(self) -> Path:
        """Lock files, one per purpose."""
        return self.root / "locks"

    @property
    def temporary(self) -> Path:
        """Temporary files of Spark and the JVM."""
        return self.root / "tmp"

    @property
    def logs(self) -> Path:
        """Full stack traces of unexpected errors."""
        return self.root / "logs"
