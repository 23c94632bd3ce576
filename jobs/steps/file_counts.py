"""Where the events of a pattern lie, counted in the files of the events by tasks of Spark (``jobs.cep.survey``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from jobs.cep.feed import Feed, with_keys
from jobs.cep.slices import CELLS
from jobs.cep.survey import Ask, Survey, cells_of_day, drawn_of_day, survey_day, together
from jobs.lake.event_files import EventFiles
from jobs.lake.python_workers import forget_archives

T = TypeVar("T")


class FileCounts:
    """A pattern's events in the files.

    Args:
        spark: the session.
        files: the files.
        ask: the pattern, and its events.
        survey: what was counted of them, if it was; else one job counts when it is needed.
    """

    def __init__(self, spark: SparkSession, files: EventFiles, ask: Ask, survey: Survey | None = None) -> None:
        self.spark, self.files, self.ask = spark, files, ask
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
        """As ``jobs.steps.order_choice.Look``; read here."""
        ask, files = self.ask, self.files
        feed = Feed(files, ask.pattern, tuple(name for name in columns if name in files.schema.names))
        parts = [feed.day(day, *ask.span) for day in ask.days(files)]
        found = pa.concat_tables(parts) if parts else files.schema.empty_table().select(feed.columns)
        return found if ask.pattern.partition_key is None else with_keys(ask.pattern, found)

    def stretches(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        """As ``jobs.steps.order_choice.Look``; ``length`` is what the survey was asked for."""
        assert length == self.ask.length
        return self.survey.numbers, self.survey.counts

    def drawn(self, length: int, stretches: Sequence[int], thinning: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """As ``jobs.steps.order_choice.Look``; one job over the days of the stretches."""
        files, ask = self.files, self.ask
        there = [name for name in columns if name in files.schema.names]
        spans = [(number * length, (number + 1) * length) for number in stretches]
        days = sorted({day for span in spans for day in files.within(*span)} & set(ask.days(files)))
        found = on_days(self.spark, days, lambda day: drawn_of_day(files, day, ask, there, stretches, thinning))
        if found:
            return pa.concat_tables(found)
        flags = [pa.field(f"_is{number}", pa.bool_()) for number in range(len(thinning))]
        return pa.schema([*(files.schema.field(name) for name in there), *flags]).empty_table()

    def by_cell(self, cells: Sequence[tuple[int, int]], parts: int, key: Any = None) -> np.ndarray:
        """As ``jobs.cep.slices.Cells``; one job, if it is not what the survey counted."""
        if (list(cells), parts, key) == ([self.ask.span], CELLS, None):
            return self.survey.cells
        files, ask = self.files, self.ask
        days = sorted({day for cell in cells for day in files.within(*cell)} & set(ask.days(files)))
        counts = on_days(self.spark, days, lambda day: cells_of_day(files, day, ask, cells, parts, key))
        return np.sum([np.zeros((len(ask.names), len(cells) * parts)), *counts], axis=0)


def survey_all(spark: SparkSession, files: EventFiles, asks: Sequence[Ask]) -> list[Survey | Exception]:
    """One survey per pattern, all by one job that reads each day once; an error instead of it stops no other."""
    per_day: dict[date, list[int]] = {}
    for number, ask in enumerate(asks):
        for day in ask.days(files):
            per_day.setdefault(day, []).append(number)
    days = sorted(per_day)
    found = on_days(spark, days, lambda day: survey_day(files, day, [asks[n] for n in per_day[day]]))
    surveys: list[Survey | Exception] = []
    for number, ask in enumerate(asks):
        mine = [one[per_day[day].index(number)] for day, one in zip(days, found, strict=True) if number in per_day[day]]
        errors = [one for one in mine if isinstance(one, Exception)]
        surveys.append(errors[0] if errors else together([one for one in mine if isinstance(one, Survey)], ask))
    return surveys


def on_days(spark: SparkSession, days: Sequence[date], work: Callable[[date], T]) -> list[T]:
    """What ``work`` gives for each day, each by a task of its own."""

    def worked(day: date) -> T:
        forget_archives()
        return work(day)

    return spark.sparkContext.parallelize(days, len(days)).map(worked).collect() if days else []
