"""The process from which Spark forks its Python workers on this machine.

It has imported what nearly every task uses, so a worker begins its first task at once; PySpark's own daemon has not,
and each of its workers imports all of it anew, most of a second. Nothing else is done before a fork: no thread of ours
runs that a worker would miss.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

import duckdb  # noqa: F401
import pandas  # noqa: F401
import pyarrow.compute  # noqa: F401
import pyarrow.dataset  # noqa: F401
import pyarrow.parquet  # noqa: F401
from pyspark.daemon import manager

import chainlake.lake.delta.data_files  # noqa: F401
from chainlake.lake.spark.python_workers import forget_archives

_serve: Callable[[], object] = manager

if __name__ == "__main__":
    forget_archives()
    # A worker that looked through these objects for cycles would copy the memory that it shares with the others.
    gc.freeze()
    _serve()
