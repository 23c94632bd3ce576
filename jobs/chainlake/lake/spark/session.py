"""The one place that makes a Spark session, with a reason for every setting.

For a cluster, set ``SPARK_MASTER`` (default ``local[2]``) and the site's own settings (see ``site.py``);
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
from chainlake.env.variables import value_of
from chainlake.lake.spark.cds import java_options
from chainlake.lake.spark.jars import delta_jars
from chainlake.lake.spark.lost import NotStarted
from chainlake.lake.spark.site import FIXED, Site, properties_file
from chainlake.paths import PACKAGE, Home, code_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: A step's queries are interpreted if they see at most this many rows.
_INTERPRETED_ROWS = 200_000
#: Rows per shuffle partition: in a driver with 1 GB, each of two tasks can sort this many in memory.
_ROWS_PER_PARTITION = 150_000
_MOST_PARTITIONS = 2_000
#: How long to wait for the JVM to end: one that writes a class archive takes long.
_STOP_SECONDS = 300


def spark_session(home: Home, app: str, *, long_running: bool = False) -> SparkSession:
    """The session of this process, made on the first call.

    Args:
        home: the installation, which holds JARs, temporary files and the code archive.
        app: name shown in Spark's logs; only the first call of a process decides.
        long_running: keep the optimising compiler (backfills, benchmarks); short jobs start faster without it.

    Raises:
        InfrastructureError: Java, the JARs or the folders cannot be used.
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
    _choose_address(site)
    # This is a variable, because the setting spark.local.dir causes a warning at every start.
    os.environ.setdefault("SPARK_LOCAL_DIRS", str(folder))
    builder = SparkSession.builder.master(site.master).appName(app)
    archive = code_archive(folder)
    ours = settings(home, jars, folder, long_running=long_running)
    if site.on_this_machine:
        ours |= _forked_workers(archive)
    wanted = site.merged(ours)
    theirs = {key: value for key, value in wanted.items() if key not in ours and key not in FIXED}
    for key, value in wanted.items():
        if key not in theirs:
            builder = builder.config(key, value)
    if site.master == "local" or site.master.startswith("local["):
        # Without a secret, Spark's ports on loopback accept serialised objects from any user of the machine. Here Spark
        # makes the secret itself; on a cluster it is the cluster's.
        builder = builder.config("spark.authenticate", "true")
    try:
        with _configured(theirs, folder):
            session = builder.getOrCreate()
    except Exception as error:
        raise NotStarted.of(error) from error
    session.sparkContext.setLogLevel("WARN")
    session.sparkContext.addPyFile(str(archive))
    return session


def _forked_workers(archive: Path) -> dict[str, str]:
    """Settings with which workers are forked from `worker_daemon`; on a cluster, its code may not be there in time."""
    if os.pathsep in str(archive):
        # No entry of PYTHONPATH can name it, and this Python may know the package from elsewhere.
        return {}
    return {
        "spark.python.daemon.module": "chainlake.lake.spark.worker_daemon",
        # It is started before tasks bring the code.
        "spark.executorEnv.PYTHONPATH": str(archive),
    }


def _choose_python(site: Site) -> None:
    """On this machine, tasks run in this Python; on a cluster, in the one that the site names, if it names one."""
    named = site.settings.get("spark.pyspark.python")
    if site.on_this_machine:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    elif named is not None:
        os.environ["PYSPARK_PYTHON"] = named
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def _choose_address(site: Site) -> None:
    """On this machine, the driver listens on loopback; on a cluster, workers must reach it, so Spark or the user says
    where."""
    if site.on_this_machine:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


@contextmanager
def _configured(theirs: dict[str, str], folder: Path) -> Iterator[None]:
    """Pass the site's settings to the JVM that is started within this context, in a file that it reads once."""
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
        # Without this, the JVM keeps its memory and its locks as long as the Python process lives.
        gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.stdin.close()
            process.wait(timeout=_STOP_SECONDS)
        SparkContext._gateway = None
        SparkContext._jvm = None


def expect_rows(spark: SparkSession, rows: int) -> None:
    """Tell the session how many rows its next queries will see.

    Spark generates and compiles Java code for every query. For few rows that takes longer than everything else, so such
    queries are interpreted. The rows that come out are the same.

    Args:
        spark: the session.
        rows: an estimate; it affects the time taken, not the results.
    """
    compiled = rows > _INTERPRETED_ROWS
    partitions = max(_shuffle_partitions(), min(rows // _ROWS_PER_PARTITION, _MOST_PARTITIONS))
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    spark.conf.set("spark.sql.codegen.wholeStage", str(compiled).lower())
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if compiled else "NO_CODEGEN")


def _shuffle_partitions() -> int:
    """The least number of shuffle partitions, from ``CHAINLAKE_SHUFFLE_PARTITIONS``."""
    return int(value_of("CHAINLAKE_SHUFFLE_PARTITIONS") or 4)


def settings(home: Home, jars: list[Path], folder: Path, *, long_running: bool) -> dict[str, str]:
    """Our Spark settings, except those that a site cannot choose (``site.FIXED``).

    Args:
        home: its cache may hold a class archive.
        jars: Delta's JARs.
        folder: temporary folder of Spark and the JVM.
        long_running: see :func:`spark_session`.
    """
    java = ["-XX:-UsePerfData", f'-Djava.io.tmpdir="{folder}"', "-Duser.timezone=UTC"]
    java += java_options(home, jars)
    if not long_running:
        # Otherwise two thirds of the CPU time of a start would go into compiling code that runs once.
        java += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return {
        "spark.jars": ",".join(path.as_uri() for path in jars),
        # They are also on the class path, since classes of added JARs cannot be in a class archive.
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        # Derby admits one process, but two applications run at a time here, so tables are addressed by path.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.driver.memory": value_of("SPARK_DRIVER_MEMORY") or "1g",
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
    """A zip of the package, named after the digest of its sources; on a cluster, workers have no other copy.

    It holds compiled code, so that a worker takes half as long to import it; a worker with another version of Python
    compiles the source. The content under a name never changes, because Spark refuses a file that has changed: if two
    drivers make it at once, the first one's stays.
    """
    sources = {str(path.relative_to(PACKAGE.parent)): path.read_bytes() for path in code_files()}
    digest = hashlib.sha256(MAGIC_NUMBER)
    for name, source in sources.items():
        digest.update(f"{name}\0{len(source)}\0".encode() + source)
    target = folder / f"chainlake-{digest.hexdigest()[:16]}.zip"
    if target.exists():
        # The sweep removes files that were not used for a week.
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
        # The file system has no hard links.
        os.replace(work, target)
    Path(work).unlink(missing_ok=True)
    return target


def _compiled(name: str, source: bytes) -> bytes:
    """A module's ``.pyc``, not checked against its source's time: a worker's clock may be in another time zone."""
    code = marshal.dumps(compile(source, name, "exec", dont_inherit=True))
    return MAGIC_NUMBER + struct.pack("<I", 1) + source_hash(source) + code
