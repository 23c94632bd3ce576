"""Windowed least-squares models over several nodes, and the monitors that tell when they changed.

Plain arrays in, arrays out: nothing here imports Spark, Airflow or Delta.
The arithmetic is in docs/monitors.md, the files are in docs/model-change.md.
"""

from __future__ import annotations

from chainlake.model_change.library import MonitorResult, monitor

#: Raised by hand whenever the results of an unchanged model on unchanged events can change.
ENGINE_VERSION = 6

__all__ = ["ENGINE_VERSION", "MonitorResult", "monitor"]
