"""Where things are stored: everything a run writes is under ``CHAINLAKE_HOME`` and the cache."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from chainlake.errors import InfrastructureError, UsageError

#: The installed package, and the folder from which it is imported.
PACKAGE = Path(__file__).resolve().parent
CODE = PACKAGE.parent
#: The project folder: that of the checkout, or the working directory where the package was installed from a wheel.
PROJECT = CODE.parent if (CODE.parent / "pyproject.toml").is_file() and CODE.name == "jobs" else Path.cwd()


#: What delta-rs does not find again in the path of a folder, which it takes for that of a URL.
_ODD = re.compile(r"[\x00-\x1f\x7f\[\]^|\\#?]|%[0-9A-Fa-f]{2}")


def code_files() -> list[Path]:
    """The package's Python files, its schemas included, which a checkout keeps outside of it and links to."""
    found = []
    for folder, folders, names in os.walk(PACKAGE, followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found += [Path(folder, name) for name in names if name.endswith(".py")]
    return sorted(found)


def _folder(variable: str, default: Path) -> Path:
    return Path(os.environ.get(variable) or default).expanduser().absolute()


def _place(place: str) -> str:
    """A path or URL; ``s3a``, as Hadoop says it, is ``s3``, and ``%20`` in a URL is the space it stands for."""
    if "://" in place:
        # delta-rs takes the place for a URL, and what lists files takes it for their name; until nothing is left to
        # decode, since processes that are started here get the place as it is then.
        while (plain := unquote(place)) != place:
            place = plain
    return re.sub("^s3[an]://", "s3://", place).rstrip("/")


def _landing_root() -> str:
    place = os.environ.get("CHAINLAKE_LANDING", "")
    if not place or "://" in place:
        return _place(place)
    return str(Path(place).expanduser().absolute())


@dataclass(frozen=True)
class Home:
    """The folders of one Chainlake installation.

    Args:
        root: ``CHAINLAKE_HOME``, default ``.chainlake`` in the project folder.
        lake: path of the Delta tables, in a folder or in an object store (``s3://bucket/prefix``);
            ``CHAINLAKE_LAKE``, default ``<root>/lake``.
        config: folder with ``sources/``, ``patterns/`` and ``models/``; ``CHAINLAKE_CONFIG``, default ``dags/config``.
        cache: downloaded JARs and other things a later run uses; ``CHAINLAKE_CACHE``, default ``~/.cache/chainlake``.
        landing_root: folder of the landing folders of all sources, or their place in an object store;
            ``CHAINLAKE_LANDING``, default ``<root>/landing``, for which the empty text stands.
    """

    root: Path
    lake: str
    config: Path
    cache: Path
    landing_root: str = ""

    @classmethod
    def from_env(cls) -> Home:
        """The home that the environment variables name.

        Raises:
            NoFolder: ``CHAINLAKE_HOME`` cannot be a folder, since it is a file or is below one.
            NoConfig: ``CHAINLAKE_CONFIG`` names something that is no folder.
        """
        root = _folder("CHAINLAKE_HOME", PROJECT / ".chainlake")
        there = next((path for path in (root, *root.parents) if path.exists()), root)
        if not there.is_dir():
            raise NoFolder.of(there, root)
        config = _folder("CHAINLAKE_CONFIG", PROJECT / "dags" / "config")
        if os.environ.get("CHAINLAKE_CONFIG") and not config.is_dir():
            # Otherwise a wrong path looks like an installation in which nothing is defined and nothing fails.
            raise NoConfig.of(config)
        return cls(
            root=root,
            lake=_place(os.environ.get("CHAINLAKE_LAKE") or str(root / "lake")),
            config=config,
            cache=_folder("CHAINLAKE_CACHE", Path.home() / ".cache" / "chainlake"),
            landing_root=_landing_root(),
        )

    @property
    def landed_all(self) -> str:
        """Path or URI of the folder that holds the landing folders of all sources."""
        return self.landing_root or str(self.root / "landing")

    def landed(self, source: str) -> str:
        """Path or URI of the folder into which files of ``source`` are delivered."""
        return f"{self.landed_all}/{source}"

    def landing(self, source: str) -> Path:
        """The same as a folder of this machine.

        Raises:
            LandingInStore: it is none.
        """
        place = self.landed(source)
        if "://" in place:
            raise LandingInStore.of(place)
        return Path(place)

    def require_place(self) -> None:
        """Make sure that tables can be stored where the lake is.

        Raises:
            OddPlace: they cannot.
        """
        if "://" not in self.lake and (found := _ODD.search(self.lake)):
            raise OddPlace.of(self.lake, found[0])

    def table(self, schema: str, name: str) -> str:
        """Path or URI of the Delta table ``schema.name``.

        A later version of a match table, named ``p/v2``, is beside the tables and inside none, since a clean-up of a
        table takes all files in its folder for the table's own. On a disk, in lakes of older releases, it is in the
        folder of the first version until it is moved (``chainlake.lake.commits.places``).
        """
        if "/" not in name:
            return f"{self.lake}/{schema}/{name}"
        beside, nested = f"{self.lake}/{schema}-next/{name}", self.nested_table(schema, name)
        return nested if os.path.isdir(f"{nested}/_delta_log") and not os.path.isdir(beside) else beside

    def nested_table(self, schema: str, name: str) -> str:
        """Where older releases put a later version of a match table: in the folder of the first."""
        return f"{self.lake}/{schema}/{name}"

    def next_tables(self, schema: str) -> str:
        """Path or URI of the folder with the later versions of the tables of ``schema``, a folder for each table."""
        return f"{self.lake}/{schema}-next"

    @property
    def staging(self) -> str:
        """The folder under which attempts stage their output, each in one of its own: inside the lake."""
        return f"{self.lake.rstrip('/')}/chainlake-staging"

    @property
    def damaged(self) -> str:
        """The folder of damaged files that were taken out of their tables: in the home, or beside tables in a store."""
        local = os.path.isdir(self.lake) or "://" not in self.lake
        return str(self.root / "damaged") if local else f"{self.lake}/chainlake-damaged"

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
        """Temporary files of Spark, the JVM and tasks."""
        return self.root / "chainlake-tmp"

    @property
    def unused(self) -> list[Path]:
        """Folders that older releases used and swept, whoever's they were; nothing is written or removed there now."""
        old = [self.root / "tmp", Path(self.lake.rstrip("/")).parent / "staging"]
        return [path for path in old if path.is_dir()]

    @property
    def logs(self) -> Path:
        """Full stack traces of unexpected errors."""
        return self.root / "logs"


class LandingInStore(InfrastructureError):
    """Landed files are in an object store, and are requested as files of this machine."""

    @classmethod
    def of(cls, place: str) -> LandingInStore:
        """For the place."""
        return cls(
            f"this needs landed files on a disk, and CHAINLAKE_LANDING puts them into {place}",
            hint="Copy them to a folder, and set CHAINLAKE_LANDING to the one above it.",
        )


class NoFolder(InfrastructureError):
    """What should be the folder of all data cannot be one."""

    @classmethod
    def of(cls, there: Path, root: Path) -> NoFolder:
        """For the file that is there, and the folder that was given."""
        return cls(f"CHAINLAKE_HOME is {root}, but {there} is a file", hint="Set CHAINLAKE_HOME to a folder.")


class NoConfig(UsageError):
    """The folder that should hold the definitions does not exist."""

    @classmethod
    def of(cls, config: Path) -> NoConfig:
        """For the path that was given."""
        what = "is a file" if config.exists() else "does not exist"
        return cls(
            f"CHAINLAKE_CONFIG is {config}, which {what}",
            hint="Set it to the folder that holds sources/, patterns/ and models/.",
        )


class OddPlace(InfrastructureError):
    """The path of the lake holds characters with which tables are not found again."""

    @classmethod
    def of(cls, lake: str, sign: str) -> OddPlace:
        """For the lake, and the first such text in its path."""
        return cls(
            f"the lake cannot be in {lake}: tables in a folder with {sign!r} in its path cannot be written",
            hint="Set CHAINLAKE_HOME or CHAINLAKE_LAKE to a folder whose path has none of [ ] ^ | \\ # ?, no control "
            "characters, and no % before two digits.",
        )
