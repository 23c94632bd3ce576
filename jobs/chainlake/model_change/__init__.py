"""Windowed least-squares models over several nodes, and the monitors that tell when such a model has changed.

Plain arrays in, arrays out: nothing here imports Spark, Airflow or Delta.
docs/monitors.md has the arithmetic, docs/model-change.md the format of the files.
"""

from __future__ import annotations

from chainlake.model_change.library import MonitorResult, monitor

#: Raised by hand whenever the results of an unchanged model on unchanged events can change.
ENGINE_VERSION = 8

__all__ = ["ENGINE_VERSION", "MonitorResult", "monitor"]
