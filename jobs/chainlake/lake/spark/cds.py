"""An archive of the JVM's loaded classes, made once in the cache: it halves the CPU time of a short application.

Measured on a loaded 2-core machine, start plus one table and one append: 20-23 s of JVM CPU time without, 10-11 s with
the archive (180 MB). Making it takes a minute. That pays off for steps run by hand or by another Airflow, each in its
own JVM, but not for one ``make run``, whose steps share two JVMs; so ``make setup`` makes it. Without it everything
works, only more slowly. The JVM ignores an archive that does not fit.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from chainlake.env.java import java_home
from chainlake.env.own_folders import NotWritable, own_folder
from chainlake.errors import InfrastructureError
from chainlake.lake.spark.jars import delta_jars
from chainlake.lake.spark.lost import NotStarted
from chainlake.paths import CODE, Home

#: The environment variable that tells the process that makes the archive where to write it.
_DUMP = "CHAINLAKE_CDS_DUMP"

_MAKE_SECONDS = 600


def archive_path(home: Home, jars: list[Path]) -> Path:
    """The place of the archive for this Java, this Spark and these JARs."""
    import pyspark

    java = Path(os.environ.get("JAVA_HOME") or java_home(), "bin", "java")
    parts = [pyspark.__version__, pyspark.__file__, *map(str, jars), os.path.realpath(java)]
    if java.exists():
        parts.append(str(java.stat().st_mtime_ns))
    return home.cache / "cds" / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}.jsa"


def java_options(home: Home, jars: list[Path]) -> list[str]:
    """Java options that use the archive, if there is one, or make it, in the process whose job that is."""
    dump = os.environ.get(_DUMP)
    if dump:
        return [f'-XX:ArchiveClassesAtExit="{dump}"']
    path = archive_path(home, jars)
    with contextlib.suppress(OSError):
        # Maintenance removes archives that nobody has used; there may be none, or the cache may be read-only.
        os.utime(path)
    return [f'-XX:SharedArchiveFile="{path}"', "-Xshare:auto", "-Xlog:disable"] if path.is_file() else []


def make_archive(home: Home) -> Path:
    """Make the archive unless it exists; it is renamed into place as a whole.

    Raises:
        InfrastructureError: Java or the disk did not allow it; everything works without the archive, too.
    """
    target = archive_path(home, delta_jars(home))
    if target.is_file():
        return target
    own_folder(target.parent, NotWritable.cache)
    with tempfile.TemporaryDirectory(prefix=".make-", dir=target.parent) as work:
        dump = Path(work, "archive.jsa")
        environment = {**os.environ, _DUMP: str(dump), "CHAINLAKE_HOME": work, "PYTHONPATH": str(CODE)}
        for name in ("CHAINLAKE_LAKE", "CHAINLAKE_LANDING", "CHAINLAKE_CONFIG", "SPARK_LOCAL_DIRS"):
            environment.pop(name, None)
        command = [sys.executable, "-m", "chainlake.operations.exercise"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_MAKE_SECONDS)
        if done.returncode or not dump.is_file():
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise NotStarted.no_archive(last)
        os.replace(dump, target)
    return target


def main() -> int:
    """Make the archive and say where it is; return 0, or 5 if it could not be made."""
    try:
        print(f"ok       Java's class archive is {make_archive(Home.from_env())}")
    except InfrastructureError as error:
        print(f"chainlake: {error.summary}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
