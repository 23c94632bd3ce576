"""The inputs of a backtest: values of parameters, and a file of labelled occurrences."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from chainlake.cep.backtest import Label
from chainlake.cli.errors import BadOption
from chainlake.days import us_of
from chainlake.errors import InputError

#: How many settings a grid may have, since each is a search.
MOST = 1_000


class BadLabels(InputError):
    """A file of labels is not valid."""

    @classmethod
    def no_start(cls, file: Path) -> BadLabels:
        """The file has no column ``start``."""
        hint = "Its columns are start and, optionally, end and key; times are ISO 8601."
        return cls("the labels have no column start", file=file, line=1, hint=hint)

    @classmethod
    def no_time(cls, file: Path, line: int, text: str) -> BadLabels:
        """A value is not a time."""
        return cls(f"'{text}' is not a time", file=file, line=line, hint="Write times as 2025-10-02T21:30.")

    @classmethod
    def ends_first(cls, file: Path, line: int) -> BadLabels:
        """A label ends before it begins."""
        return cls("the label ends before it begins", file=file, line=line)

    @classmethod
    def refused(cls, file: Path, error: Exception) -> BadLabels:
        """The file cannot be read as text."""
        return cls(f"the labels cannot be read: {error}", file=file)


def read_labels(file: Path, zone: ZoneInfo | None) -> list[Label]:
    """The labels of a CSV file with the columns ``start``, ``end`` and ``key``; the last two may be left out.

    Args:
        file: the file.
        zone: the zone of times without an offset; UTC if ``None``.

    Raises:
        InputError: the file is not such a file.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            rows = [(reader.line_num, row) for row in reader]
            names = reader.fieldnames or []
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadLabels.refused(file, error) from None
    if "start" not in names:
        raise BadLabels.no_start(file)
    found = []
    for line, row in rows:
        start = _moment(file, line, row["start"] or "", zone)
        end = _moment(file, line, row["end"], zone) if row.get("end") else start
        if end < start:
            raise BadLabels.ends_first(file, line)
        found.append(Label(start, end, row.get("key") or None))
    return found


def _moment(file: Path, line: int, text: str, zone: ZoneInfo | None) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadLabels.no_time(file, line, text) from None
    return us_of(moment if moment.tzinfo is not None else moment.replace(tzinfo=zone or UTC))


def settings_of(grids: Sequence[str]) -> Iterator[dict[str, float]]:
    """Each combination of the values of ``NAME=LOW..HIGH:N`` or ``NAME=a,b,c``; one empty one if there are no grids.

    Raises:
        UsageError: a grid has another form, or there are too many combinations.
    """
    axes = [_axis(text) for text in grids]
    if math.prod(len(values) for _, values in axes) > MOST:
        raise BadOption.wide_grid("--grid", MOST)
    names = [name for name, _ in axes]
    for combination in itertools.product(*(values for _, values in axes)):
        yield dict(zip(names, combination, strict=True))


def _axis(text: str) -> tuple[str, list[float]]:
    name, _, values = text.partition("=")
    try:
        if ".." in values:
            span, _, number = values.partition(":")
            low, high = (float(part) for part in span.split(".."))
            steps = int(number)
            if not name or steps < 2:
                raise ValueError
            found = [low + (high - low) * step / (steps - 1) for step in range(steps)]
        else:
            found = [float(part) for part in values.split(",")]
    except ValueError:
        raise BadOption.no_grid("--grid", text) from None
    if not name.strip() or not all(map(math.isfinite, found)):
        raise BadOption.no_grid("--grid", text)
    # Sums of steps have trailing digits that nobody wrote.
    return name.strip(), [float(f"{value:.12g}") for value in found]
