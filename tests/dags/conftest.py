"""Airflow for tests: a home and a SQLite database of its own, set before anything imports Airflow."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent
_HOME = Path(tempfile.mkdtemp(prefix="chainlake-airflow-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ |= {
    "AIRFLOW_HOME": str(_HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{_HOME / 'airflow.db'}",
    "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(_HOME / "bundles"),
}


@pytest.fixture(scope="session")
def airflow_database() -> Path:
    """An Airflow database with its tables, the pool of the Spark tasks, and the DAG bundle that runs belong to."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.models.pool import Pool
    from airflow.utils.db import initdb

    from chainlake.airflow.names import SPARK_POOL

    # Airflow sends every logger to a stream that pytest closes, and py4j logs when connections are collected.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    initdb()
    Pool.create_or_update_pool(SPARK_POOL, slots=2, description="", include_deferred=False)
    DagBundlesManager().sync_bundles_to_db()
    return _HOME
