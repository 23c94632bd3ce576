"""What a task's log has of the lines that its step printed."""

from __future__ import annotations

import logging

import pytest

from chainlake.airflow import tasks


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("detect pattern/shakeout: ok, 12 rows out, 1.0 s", logging.INFO),
        ("warning: the file has no header", logging.WARNING),
        ("26/11/29 17:12:44 WARN TaskSetManager: lost task", logging.WARNING),
        ("26/11/29 17:12:44 ERROR Executor: no memory", logging.ERROR),
        ("pattern/shakeout failed: no such column", logging.ERROR),
        ("audit pattern/shakeout: 1.0 s, failed: 3 rows", logging.ERROR),
        ("error: no such day", logging.ERROR),
        ("hint: give one", logging.INFO),
    ],
)
def test_lines_keep_their_level(line: str, level: int) -> None:
    seen: list[tuple[int, str]] = []
    tasks._Lines(lambda *one: seen.append(one))(line)
    assert seen == [(level, line)]


def test_what_every_start_says_is_left_out() -> None:
    seen: list[str] = []
    lines = tasks._Lines(lambda level, line: seen.append(line))
    for line in (
        "WARNING: Using incubator modules: jdk.incubator.vector",
        "26/11/29 17:12:44 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform...",
        "Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties",
        'Setting default log level to "WARN".',
        "To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).",
        "the last word",
        "",
    ):
        lines(line)
    assert seen == ["the last word", ""] and lines.last == "the last word"
