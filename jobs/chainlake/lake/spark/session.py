"""The one place that makes a Spark session: every setting with its reason.

On a cluster ``SPARK_MASTER`` (default ``local[2]``) and the site's own settings change, see ``site.py``;
``SPARK_DRIVER_MEMORY`` (default ``1g``) is Spark's own variable. Nothing is written outside ``CHAINLAKE_HOME`` and the
cache.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import shlex
import struct
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from typing import TYPE_CHECKING

from chainlake.env.java import use_java
from chainlake.env.own_folders import own_folder
from chainlake.lake.spark.cds import java_options
from chainlake.lake.spark.jars import delta_jars
from chainlake.lake.spark.lost import NotStarted
from chainlake.lake.spark.site import FIXED, Site, properties_file
from chainlake.paths import PACKAGE, Home, code_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: Rows up to which the queries of a step are interpreted.
_INTERPRETED_ROWS = 200_000
#: Rows of a shuffle partition: so many are sorted in the memory of one of two tasks in a driver of 1 GB.
_ROWS_PER_PARTITION = 150_000
_MOST_PARTITIONS = 2_000
#: A JVM that writes a class archive takes long to end.
_STOP_SECONDS = 300


def spark_session(home: Home, app: str, *, long_running: bool = False) -> SparkSession:
    """The session of this process, made on the first call.

    Args:
        home: where JARs, temporary files and the code archive lie.
        app: name shown in Spark's logs; only the first call of a process decides.
        long_running: keep the optimising compiler (backfills, benchmarks); short jobs start faster without it.

    Raises:
        InfrastructureError: Java, the JARs or the folders are not as needed.
    """
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None and running.sparkContext._jsc is not None:
        return running
    if not os.environ.get("JAVA_HOME"):
        use_java()
    jars = delta_jars(home)
    folder = own_folder(home.temporary)
    site = Site.from_env()
    for line in site.overruled:
        print(line, file=sys.stderr, flush=True)
    _choose_python(site)
    if site.on_this_machine:
        # On a cluster the workers must find the driver, so there Spark chooses its address, or the user does.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # As a variable and not as spark.local.dir, which warns at every start.
    os.environ.setdefault("SPARK_LOCAL_DIRS", str(folder))
    builder = SparkSession.builder.master(site.master).appName(app)
    ours = settings(home, jars, folder, long_running=long_running)
    wanted = site.merged(ours)
    theirs = {key: value for key, value in wanted.items() if key not in ours and key not in FIXED}
    for key, value in wanted.items():
        if key not in theirs:
            builder = builder.config(key, value)
    if site.master == "local" or site.master.startswith("local["):
        # Spark's ports on loopback take serialised objects from any user of the machine who has no secret to show;
        # here Spark makes the secret itself, on a cluster it is the cluster's.
        builder = builder.config("spark.authenticate", "true")
    try:
        with _told(theirs, folder):
            session = builder.getOrCreate()
    except Exception as error:
        raise NotStarted.of(error) from error
    session.sparkContext.setLogLevel("WARN")
    session.sparkContext.addPyFile(str(code_archive(folder)))
    return session


def _choose_python(site: Site) -> None:
    """On this machine tasks run in this Python; on a cluster it is the one that the site names, if it names one."""
    named = site.settings.get("spark.pyspark.python")
    if site.on_this_machine:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    elif named is not None:
        os.environ["PYSPARK_PYTHON"] = named
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


@contextmanager
def _told(theirs: dict[str, str], folder: Path) -> Iterator[None]:
    """Tell the JVM that is started meanwhile the site's settings, by a file that it reads once."""
    if not theirs:
        yield
        return
    name = "PYSPARK_SUBMIT_ARGS"
    before = os.environ.get(name)
    file = properties_file(theirs, folder)
    os.environ[name] = f"--properties-file {shlex.quote(str(file))} {before or 'pyspark-shell'}"
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def stop_session() -> None:
    """Stop the session of this process and its JVM, if there is one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None:
        return
    session.stop()
    gateway = SparkContext._gateway
    if gateway is not None:
        # Without this the JVM lives as long as the Python process, with its memory and its locks.
        gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.stdin.close()
            process.wait(timeout=_STOP_SECONDS)
        SparkContext._gateway = None
        SparkContext._jvm = None


def expect_rows(spark: SparkSession, rows: int) -> None:
    """Tell the session how many rows its next queries will see.

    Spark generates and compiles Java code for every query, which for few rows takes longer than all of the rest:
    these are interpreted. The rows that come out are the same.

    Args:
        spark: the session.
        rows: an estimate; it decides over seconds, not over results.
    """
    compiled = rows > _INTERPRETED_ROWS
    partitions = max(_shuffle_partitions(), min(rows // _ROWS_PER_PARTITION, _MOST_PARTITIONS))
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    spark.conf.set("spark.sql.codegen.wholeStage", str(compiled).lower())
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if compiled else "NO_CODEGEN")


def _shuffle_partitions() -> int:
    """How many there are at least; ``CHAINLAKE_SHUFFLE_PARTITIONS`` says."""
    return int(os.environ.get("CHAINLAKE_SHUFFLE_PARTITIONS") or 4)


def settings(home: Home, jars: list[Path], folder: Path, *, long_running: bool) -> dict[str, str]:
    """Our Spark settings but for those that a site cannot choose (``site.FIXED``).

    Args:
        home: its cache may hold a class archive.
        jars: Delta's JARs.
        folder: temporary folder of Spark and the JVM.
        long_running: see :func:`spark_session`.
    """
    java = ["-XX:-UsePerfData", f'-Djava.io.tmpdir="{folder}"', "-Duser.timezone=UTC"]
    java += java_options(home, jars)
    if not long_running:
        # Two thirds of the start's CPU time would go into compiling code that runs once.
        java += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return {
        "spark.jars": ",".join(path.as_uri() for path in jars),
        # Also on the class path: classes of added JARs cannot be in a class archive.
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        # Derby admits one process, and two applications run at a time here: tables are addressed by path.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.driver.memory": os.environ.get("SPARK_DRIVER_MEMORY") or "1g",
        "spark.driver.extraJavaOptions": " ".join(java),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # 200 shuffle tasks and 50 tasks per Delta snapshot cost seconds on every small table.
        "spark.sql.shuffle.partitions": str(_shuffle_partitions()),
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.python.worker.reuse": "true",
    }


def code_archive(folder: Path) -> Path:
    """A zip of the package, named by the sources in it: on a cluster, workers have no other copy of it.

    All of it is compiled there, by which a worker takes half as long to import it; a worker of another version of
    Python compiles the source. What is under a name never changes, since Spark refuses a file that became another: of
    two drivers that make it at once, the first one's stays.
    """
    sources = {str(path.relative_to(PACKAGE.parent)): path.read_bytes() for path in code_files()}
    digest = hashlib.sha256(MAGIC_NUMBER)
    for name, source in sources.items():
        digest.update(f"{name}\0{len(source)}\0".encode() + source)
    target = folder / f"chainlake-{digest.hexdigest()[:16]}.zip"
    if target.exists():
        # What was not used for a week is swept there.
        target.touch()
        return target
    handle, work = tempfile.mkstemp(prefix=".code-", suffix=".zip", dir=folder)
    with os.fdopen(handle, "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in sources.items():
            archive.writestr(zipfile.ZipInfo(name), source, zipfile.ZIP_DEFLATED)
            archive.writestr(zipfile.ZipInfo(f"{name}c"), _compiled(name, source), zipfile.ZIP_DEFLATED)
    try:
        os.link(work, target)
    except FileExistsError:
        # Another driver was first, with the same sources; its file may be in use.
        pass
    except OSError:
        # On a file system without such links.
        os.replace(work, target)
    Path(work).unlink(missing_ok=True)
    return target


def _compiled(name: str, source: bytes) -> bytes:
    """What Python keeps of a module, told to look at no time of its source: a worker's clock may be of another zone."""
    code = marshal.dumps(compile(source, name, "exec", dont_inherit=True))
    return MAGIC_NUMBER + struct.pack("<I", 1) + source_hash(source) + code
