"""A site's own Spark: its master, and the settings in the file that ``CHAINLAKE_SPARK_CONF`` names.

The file has the form of Spark's own ``spark-defaults.conf``. Its settings apply, except those in ``FIXED``, on which
rows depend.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from chainlake.env.own_folders import own_folder
from chainlake.env.threads import SETTINGS
from chainlake.errors import UsageError

#: The environment variable that names the file.
VARIABLE = "CHAINLAKE_SPARK_CONF"
#: The environment variable that names the master; in the file it is ``spark.master``.
MASTER = "SPARK_MASTER"
_SETTING = re.compile(r"([^\s=:]+)(?:\s*[=:]\s*|\s+)(\S.*)")


@dataclass(frozen=True)
class Fixed:
    """A setting that a site cannot choose.

    Args:
        value: its value here; None if it is left out.
        why: how rows would differ or be lost with another value.
    """

    value: str | None
    why: str


#: The settings that rows depend on. A name that ends with a dot stands for all names that begin with it.
FIXED: dict[str, Fixed] = {
    "spark.submit.deployMode": Fixed("client", "a step's result, exit code and end are those of this process"),
    "spark.sql.session.timeZone": Fixed(
        "UTC", "days are UTC days; and with Etc/UTC, Arrow functions fail over the name of the zone"
    ),
    "spark.sql.catalog.spark_catalog": Fixed(
        "org.apache.spark.sql.delta.catalog.DeltaCatalog", "tables are Delta tables, and refuse rows by their rules"
    ),
    "spark.sql.ansi.enabled": Fixed("true", "without it, a value that does not fit becomes another one, silently"),
    "spark.sql.caseSensitive": Fixed("false", "columns that differ in case alone would be columns of two names"),
    "spark.sql.storeAssignmentPolicy": Fixed("ANSI", "with another one, values that do not fit are stored as NULL"),
    "spark.sql.execution.arrow.pyspark.enabled": Fixed("true", "rows cross between Java and Python by their types"),
    "spark.sql.parquet.outputTimestampType": Fixed(
        "TIMESTAMP_MICROS", "INT96 has no statistics, and other readers take it for nanoseconds"
    ),
    "spark.sql.parquet.datetimeRebaseModeInRead": Fixed("CORRECTED", "old dates would be moved by days"),
    "spark.sql.parquet.datetimeRebaseModeInWrite": Fixed("CORRECTED", "old dates would be moved by days"),
    "spark.sql.files.ignoreMissingFiles": Fixed("false", "rows of a file that is gone would be missing, silently"),
    "spark.sql.files.ignoreCorruptFiles": Fixed("false", "rows of a damaged file would be missing, silently"),
    "spark.hadoop.parquet.page.write-checksum.enabled": Fixed("true", "a damaged page must be found"),
    "spark.hadoop.parquet.page.verify-checksum.enabled": Fixed("true", "a damaged page must not be read as rows"),
    "spark.databricks.delta.schema.autoMerge.enabled": Fixed("false", "a table's columns are those of its definition"),
    "spark.databricks.delta.properties.defaults.": Fixed(None, "a table's properties are those of its definition"),
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": Fixed(
        "false", "every Delta reader can follow tables without them (reader version 1)"
    ),
    **{f"spark.executorEnv.{name}": Fixed("1", "the last bits of a model's numbers depend on it") for name in SETTINGS},
    "spark.sql.legacy.": Fixed(None, "it gives older releases' values for the same rows"),
}

#: Settings that are lists, with their separators: our parts come first, the site's after them.
_LISTS = {
    "spark.jars": ",",
    "spark.sql.extensions": ",",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.driver.extraJavaOptions": " ",
    "spark.executorEnv.PYTHONPATH": os.pathsep,
}


class WrongSparkConf(UsageError):
    """The site's file of Spark settings cannot be used."""

    @classmethod
    def unreadable(cls, path: Path, error: OSError | UnicodeDecodeError) -> WrongSparkConf:
        """The file does not exist, or is not text."""
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        return cls(f"{path} cannot be read: {reason}", hint=f"{VARIABLE} names a file of Spark settings.")

    @classmethod
    def backslash(cls, path: Path, line: int) -> WrongSparkConf:
        """A line with a sign that Java's files continue lines and spell characters with."""
        return cls._at(path, line, "a backslash is not understood here")

    @classmethod
    def no_value(cls, path: Path, line: int, key: str) -> WrongSparkConf:
        """A line with a key alone."""
        return cls._at(path, line, f"'{key}' has no value")

    @classmethod
    def no_setting(cls, path: Path, line: int, key: str) -> WrongSparkConf:
        """A line with a key of something else."""
        return cls._at(path, line, f"'{key}' is not a setting of Spark")

    @classmethod
    def twice(cls, path: Path, line: int, key: str) -> WrongSparkConf:
        """A line with a key that an earlier one has."""
        return cls._at(path, line, f"duplicate key '{key}'")

    @classmethod
    def _at(cls, path: Path, number: int, what: str) -> WrongSparkConf:
        return cls(f"{path}:{number}: {what}", hint="Each line is a key of Spark and its value: spark.cores.max 4")


@dataclass(frozen=True)
class Site:
    """What a site says about its Spark.

    Args:
        settings: those in its file.
        file: the file from which they come.
    """

    settings: dict[str, str]
    file: Path | None = None

    @classmethod
    def from_env(cls) -> Site:
        """Read what the environment says.

        Raises:
            WrongSparkConf: the file cannot be read, or one of its lines is not a Spark setting.
        """
        name = os.environ.get(VARIABLE)
        if not name:
            return cls({})
        path = Path(name).expanduser().absolute()
        return cls(_read(path), path)

    @property
    def master(self) -> str:
        """The master: where Spark runs its tasks."""
        return os.environ.get(MASTER) or self.settings.get("spark.master") or "local[2]"

    @property
    def on_this_machine(self) -> bool:
        """Whether Spark runs on this machine alone, without a cluster to share."""
        return self.master.startswith("local")

    @property
    def overruled(self) -> list[str]:
        """One line for each setting of the file that does not apply, with the reason."""
        found = []
        for key, value in self.settings.items():
            fixed = _fixed(key)
            if fixed is not None and fixed.value != value:
                instead = "left out" if fixed.value is None else f"{fixed.value} here"
                found.append(f"{self.file}: {key} is {instead}, not {value}: {fixed.why}")
        return found

    def merged(self, ours: dict[str, str]) -> dict[str, str]:
        """All settings.

        Args:
            ours: the settings that would apply without the site's.
        """
        wanted = {key: value for key, value in self.settings.items() if _fixed(key) is None}
        for key, between in _LISTS.items():
            if key in ours and key in wanted:
                wanted[key] = ours[key] + between + wanted[key]
        fixed = {key: one.value for key, one in FIXED.items() if one.value is not None}
        return ours | wanted | fixed


def _fixed(key: str) -> Fixed | None:
    if key in FIXED:
        return FIXED[key]
    return next((one for name, one in FIXED.items() if name.endswith(".") and key.startswith(name)), None)


def _read(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongSparkConf.unreadable(path, error) from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text[0] in "#!":
            continue
        if "\\" in text:
            raise WrongSparkConf.backslash(path, number)
        setting = _SETTING.fullmatch(text)
        if setting is None:
            raise WrongSparkConf.no_value(path, number, text.split()[0])
        key, value = setting.groups()
        if not key.startswith("spark."):
            raise WrongSparkConf.no_setting(path, number, key)
        if key in found:
            raise WrongSparkConf.twice(path, number, key)
        found[key] = value
    return found


def properties_file(settings: dict[str, str], folder: Path) -> Path:
    """Write a file of settings for this process alone: on a command line, all users of the machine would see the
    secrets.

    Args:
        settings: keys and values, each of one line.
        folder: where to put it.
    """
    handle, name = tempfile.mkstemp(prefix="spark-", suffix=".conf", dir=own_folder(folder))
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        # Java reads such files as Latin-1 and takes a backslash for the start of an escaped character.
        stream.writelines(f"{key} {_escaped(value)}\n" for key, value in settings.items())
    return Path(name)


def _escaped(value: str) -> str:
    return "".join(one if " " <= one <= "~" and one != "\\" else _utf16(one) for one in value)


def _utf16(one: str) -> str:
    codes = one.encode("utf-16-be")
    return "".join(f"\\u{codes[i]:02x}{codes[i + 1]:02x}" for i in range(0, len(codes), 2))
