"""Where the events of a pattern lie, counted in the files of the events by tasks of Spark
(``chainlake.detect.counts.survey``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from chainlake.detect.counts.survey import Ask, Draw, Survey, cells_of_day, drawn_of_day, survey_day, together
from chainlake.detect.tasks.feed import Feed, with_keys
from chainlake.detect.tasks.slices import CELLS
from chainlake.lake.delta.event_files import EventFiles
from chainlake.lake.spark.python_workers import forget_archives

T = TypeVar("T")


class FileCounts:
    """A pattern's events in the files.

    Args:
        spark: the session.
        files: the files.
        ask: the pattern, and its events.
        survey: what was counted of them, if it was; else one job counts when it is needed.
        sample: what was drawn of them, and how, if it was.
    """

    def __init__(
        self,
        spark: SparkSession,
        files: EventFiles,
        ask: Ask,
        survey: Survey | None = None,
        sample: tuple[Draw, pa.Table] | None = None,
    ) -> None:
        self.spark, self.files, self.ask, self._sample = spark, files, ask, sample
        if survey is not None:
            self.survey = survey

    @cached_property
    def survey(self) -> Survey:
        """The counts of the whole span."""
        (found,) = survey_all(self.spark, self.files, [self.ask])
        if isinstance(found, Exception):
            raise found
        return found

    def whole(self, columns: Sequence[str]) -> pa.Table:
        """As ``chainlake.detect.order.Look``; read here."""
        ask, files = self.ask, self.files
        feed = Feed(files, ask.pattern, tuple(name for name in columns if name in files.schema.names))
        parts = [feed.day(day, *ask.span) for day in ask.days(files)]
        found = pa.concat_tables(parts) if parts else files.schema.empty_table().select(feed.columns)
        return found if ask.pattern.partition_key is None else with_keys(ask.pattern, found)

    def stretches(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        """As ``chainlake.detect.order.Look``; ``length`` is what the survey was asked for."""
        assert length == self.ask.length
        return self.survey.numbers, self.survey.counts

    def drawn(self, length: int, stretches: Sequence[int], thinning: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """As ``chainlake.detect.order.Look``; one job over the days of the stretches, if it is not there already."""
        draw = Draw(self.ask, tuple(stretches), tuple(thinning), tuple(columns))
        assert length == self.ask.length
        if self._sample is not None and self._sample[0] == draw:
            return self._sample[1]
        (found,) = draw_all(self.spark, self.files, [draw])
        if isinstance(found, Exception):
            raise found
        return found

    def by_cell(self, cells: Sequence[tuple[int, int]], parts: int, key: Any = None) -> np.ndarray:
        """As ``chainlake.detect.tasks.slices.Cells``; one job, if it is not what the survey counted."""
        if (list(cells), parts, key) == ([self.ask.span], CELLS, None):
            return self.survey.cells
        files, ask = self.files, self.ask
        days = sorted({day for cell in cells for day in files.within(*cell)} & set(ask.days(files)))
        counts = on_days(self.spark, days, lambda day: cells_of_day(files, day, ask, cells, parts, key))
        return np.sum([np.zeros((len(ask.names), len(cells) * parts)), *counts], axis=0)


def survey_all(spark: SparkSession, files: EventFiles, asks: Sequence[Ask]) -> list[Survey | Exception]:
    """One survey per pattern, all by one job that reads each day once; an error instead of it stops no other."""
    found = _of_all(
        spark, [ask.days(files) for ask in asks], lambda day, of: survey_day(files, day, [asks[n] for n in of])
    )
    return [one if isinstance(one, Exception) else together(one, ask) for one, ask in zip(found, asks, strict=True)]


def draw_all(spark: SparkSession, files: EventFiles, draws: Sequence[Draw]) -> list[pa.Table | Exception]:
    """What is drawn, all by one job that reads each day once; an error instead of it stops no other."""
    found = _of_all(
        spark, [draw.days(files) for draw in draws], lambda day, of: drawn_of_day(files, day, [draws[n] for n in of])
    )
    return [
        one if isinstance(one, Exception) else pa.concat_tables(one) if one else draw.nothing(files)
        for one, draw in zip(found, draws, strict=True)
    ]


def _of_all(
    spark: SparkSession, days: Sequence[Sequence[date]], work: Callable[[date, list[int]], list[T | Exception]]
) -> list[list[T] | Exception]:
    """What ``work`` finds for several patterns on their days, or the first error; it is given the numbers of those that
    have a day."""
    per_day: dict[date, list[int]] = {}
    for number, mine in enumerate(days):
        for day in mine:
            per_day.setdefault(day, []).append(number)
    every = sorted(per_day)
    found = dict(zip(every, on_days(spark, every, lambda day: work(day, per_day[day])), strict=True))
    results: list[list[T] | Exception] = []
    for number, mine in enumerate(days):
        parts = [found[day][per_day[day].index(number)] for day in mine]
        errors = [one for one in parts if isinstance(one, Exception)]
        results.append(errors[0] if errors else [one for one in parts if not isinstance(one, Exception)])
    return results


def on_days(spark: SparkSession, days: Sequence[date], work: Callable[[date], T]) -> list[T]:
    """What ``work`` gives for each day, each by a task of its own."""

    def worked(day: date) -> T:
        forget_archives()
        return work(day)

    return spark.sparkContext.parallelize(days, len(days)).map(worked).collect() if days else []
