"""Delta's two JARs: fetched once, verified, kept in the cache, and used offline from then on.

The pip package ``delta-spark`` holds no JAR, and its resolver brings 30 artifacts at every start. Two are enough.
Spark's own resolver fetches them, so that a site's repository settings apply, and they are renamed into the cache as
whole files, so that two processes that fetch at once never see half a file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from chainlake.env.own_folders import NotWritable, own_folder
from chainlake.errors import InfrastructureError
from chainlake.paths import Home

#: File name → (Maven coordinate, SHA-256). The JARs must have the ``delta-spark`` wheel's version.
ARTIFACTS = {
    "delta-spark_4.1_2.13-4.4.0.jar": (
        "io.delta:delta-spark_4.1_2.13:4.4.0",
        "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    ),
    "delta-storage-4.4.0.jar": (
        "io.delta:delta-storage:4.4.0",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
}

#: Everything that the two would pull in; all of it is either in Spark already or not used by us.
_EXCLUDES = "io.delta:delta-kernel*,io.unitycatalog:*,io.airlift:*,org.*:*,com.*:*,javax*:*,commons*:*"

_FETCH_SECONDS = 180


def delta_jars(home: Home) -> list[Path]:
    """The two JARs, fetched on first use.

    Args:
        home: its ``cache`` keeps the JARs. ``CHAINLAKE_JARS`` names a folder that holds them instead (air-gapped
            sites); then nothing is fetched.

    Raises:
        InfrastructureError: a JAR is missing and cannot be fetched, or its content is not the expected one.
    """
    override = os.environ.get("CHAINLAKE_JARS")
    if override:
        return _verified(Path(override).expanduser().absolute(), "CHAINLAKE_JARS must name a folder that holds it.")
    folder = home.cache / "jars"
    if not all(_intact(folder / name, digest) for name, (_, digest) in ARTIFACTS.items()):
        _fetch(folder)
    return [folder / name for name in ARTIFACTS]


def _intact(path: Path, digest: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


class JarsUnusable(InfrastructureError):
    """Delta's two JARs are missing or not the expected files."""

    @classmethod
    def absent(cls, name: str, folder: Path, hint: str) -> JarsUnusable:
        """One is missing in a folder that we do not fill."""
        return cls(f"Delta's JAR {name} is not in {folder}", hint=hint)

    @classmethod
    def altered(cls, path: Path, digest: str) -> JarsUnusable:
        """One in the folder is not the expected file."""
        return cls(f"{path} is not the expected file: its SHA-256 differs from {digest}", hint="Replace it.")

    @classmethod
    def forged(cls, name: str, digest: str) -> JarsUnusable:
        """The repository returned a file that is not the expected one."""
        return cls(
            f"the repository returned a {name} whose SHA-256 is not {digest}",
            hint="Do not use it: check the repository that Spark's resolver is configured with.",
        )

    @classmethod
    def not_fetched(cls, output: str) -> JarsUnusable:
        """Spark's resolver returned nothing; ``output`` is what it printed."""
        if "JAVA_HOME is not set" in output or "java: not found" in output or "java: command not found" in output:
            return cls("Java was not found", hint="Install Java 17 or 21 and set JAVA_HOME.")
        return cls(
            "Delta's two JARs are not in the cache and could not be fetched: no Maven repository answered",
            hint="Connect to the network once, or set CHAINLAKE_JARS to a folder with " + " and ".join(ARTIFACTS) + ".",
        )


def _verified(folder: Path, hint: str) -> list[Path]:
    for name, (_, digest) in ARTIFACTS.items():
        path = folder / name
        if not path.is_file():
            raise JarsUnusable.absent(name, folder, hint)
        if not _intact(path, digest):
            raise JarsUnusable.altered(path, digest)
    return [folder / name for name in ARTIFACTS]


def _fetch(folder: Path) -> None:
    """Resolve into a private folder beside ``folder`` and rename file by file: atomic, and idempotent."""
    own_folder(folder, NotWritable.cache)
    try:
        work = Path(tempfile.mkdtemp(prefix=".fetch-", dir=folder))
    except OSError as error:
        raise NotWritable.cache(folder, error) from None
    print(f"fetching Delta's two JARs, once (at most {_FETCH_SECONDS} s)", file=sys.stderr, flush=True)
    try:
        output = _resolve(work)
        for name, (coordinate, digest) in ARTIFACTS.items():
            found = work / "ivy" / "jars" / f"{coordinate.split(':')[0]}_{name}"
            if not found.is_file():
                raise JarsUnusable.not_fetched(output)
            if not _intact(found, digest):
                raise JarsUnusable.forged(name, digest)
            os.replace(found, folder / name)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _resolve(work: Path) -> str:
    """Run Spark's resolver with an empty program; return its output."""
    import pyspark

    program = work / "nothing.py"
    program.write_text("")
    command = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        "--master",
        "local[1]",
        "--conf",
        "spark.jars.packages=" + ",".join(coordinate for coordinate, _ in ARTIFACTS.values()),
        "--conf",
        f"spark.jars.excludes={_EXCLUDES}",
        "--conf",
        f"spark.jars.ivy={work / 'ivy'}",
        "--conf",
        f'spark.driver.extraJavaOptions=-XX:-UsePerfData -Djava.io.tmpdir="{work}"',
        str(program),
    ]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_FETCH_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise JarsUnusable.not_fetched("") from None
    except OSError as error:
        raise JarsUnusable(f"Spark's resolver cannot be started: {error}") from None
    return done.stdout + done.stderr
