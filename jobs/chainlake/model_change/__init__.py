"""Windowed least-squares models over several nodes, and the monitors that detect when such a model has changed.

Plain arrays in, arrays out: nothing here imports Spark, Airflow or Delta.
docs/monitors.md has the arithmetic, docs/model-change.md the format of the files.
"""
