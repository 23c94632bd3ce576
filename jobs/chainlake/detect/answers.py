"""Pairs that searches of several tasks need, each evaluated by one task (docs/semantics.md#functions-of-pairs).

Questions and answers are kept in files; a task returns only their paths and numbers of pairs.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from chainlake.cep.estimate.cost import EVALUATION
from chainlake.cep.heavy.asking import AT, HASH, Asked, Asks, Exchange, Given, answered
from chainlake.cep.heavy.memo import MOST_PAIRS
from chainlake.cep.language.declared.function import Heavy
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.ownership import calls_of
from chainlake.detect.division.cut import pieces_of
from chainlake.errors import ChainlakeError
from chainlake.run.tasks import Tasks
from chainlake.storage.parquet import parquet_rows, parquet_writer
from chainlake.storage.resolve import storage_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq

#: How many pairs wait before they are written.
_WAITING = 1 << 17
#: Pairs of a row group, which are near each other in hash or time, so that who needs few reads few.
_GROUP = 1 << 14
#: How often a search asks before it calls functions itself; each time it gets at least one condition further.
_MOST_TURNS = 40
#: The range of the hash by which pairs are divided.
_HASHES = 1 << 32


@dataclass(frozen=True)
class PairFile:
    """A file of pairs, asked for or answered.

    Args:
        key, either_way: as in ``chainlake.cep.heavy.asking.Asked``.
        path: the file.
        pairs: how many it holds.
    """

    key: str
    either_way: bool
    path: str
    pairs: int


class AskedFiles:
    """Writes the pairs that a search asks for, a file for each call and each type of its arguments."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files: dict[tuple[str, bool, pa.Schema], _AskedFile] = {}

    def keep(self, asked: Asked) -> None:
        """Take pairs, in any order."""
        # Sums of whole numbers are doubles in blocks where one of them does not fit 64 bits.
        key = asked.key, asked.either_way, asked.pairs.schema
        if key not in self._files:
            self._files[key] = _AskedFile(_new(self._folder, "asked"))
        self._files[key].add(asked.pairs)

    def close(self) -> tuple[PairFile, ...]:
        """Finish the files."""
        return tuple(PairFile(key, way, file.path, file.close()) for (key, way, _), file in self._files.items())


class _AskedFile:
    def __init__(self, path: str) -> None:
        self.path = path
        self._waiting: list[pa.Table] = []
        self._rows = self._pairs = 0
        self._writer: pq.ParquetWriter | None = None

    def add(self, pairs: pa.Table) -> None:
        self._waiting.append(pairs)
        self._rows += len(pairs)
        if self._rows >= _WAITING:
            self._flush()

    def close(self) -> int:
        if self._rows:
            self._flush()
        if self._writer is not None:
            self._writer.close()
        return self._pairs

    def _flush(self) -> None:
        pairs = pa.concat_tables(self._waiting).unify_dictionaries().sort_by(HASH)
        if self._writer is None:
            self._writer = parquet_writer(self.path, pairs.schema)
        self._writer.write_table(pairs, row_group_size=_GROUP)
        self._pairs += self._rows
        self._waiting, self._rows = [], 0


@dataclass(frozen=True)
class Answered:
    """What came of the pairs of a pattern.

    Args:
        files: the answers.
        seconds: duration of each task.
        failure: what stopped one of them, if anything.
    """

    files: tuple[PairFile, ...] = ()
    seconds: tuple[float, ...] = ()
    failure: ChainlakeError | None = None

    @property
    def pairs(self) -> int:
        """How many pairs were evaluated."""
        return sum(file.pairs for file in self.files)

    def __add__(self, other: Answered) -> Answered:
        return Answered(self.files + other.files, self.seconds + other.seconds, self.failure or other.failure)


@dataclass(frozen=True)
class Unfinished:
    """A search that is to be run again, since it did not know all pairs that it needs.

    Args:
        asked: those that others are to evaluate.
    """

    asked: tuple[PairFile, ...] = ()

    @classmethod
    def of(cls, exchanges: Sequence[Exchange], asked: AskedFiles | None) -> Unfinished | None:
        """What is asked for by searches that have ended; None if they knew all that they need."""
        if all(one.asks is None or one.asks.complete for one in exchanges):
            return None
        return cls(() if asked is None else asked.close())


@dataclass(frozen=True)
class _Part:
    """The pairs of one call, asked for in some files, that have hashes in ``[lo, hi)``."""

    number: int
    function: Heavy
    folder: str
    files: tuple[PairFile, ...]
    lo: int
    hi: int


@dataclass(frozen=True)
class Known:
    """What is known of the pairs of a pattern when its searches begin.

    Args:
        files: the answers.
        asks: whether others are asked for; if not, functions are called for them.
    """

    files: tuple[PairFile, ...] = ()
    asks: bool = False

    def exchange(self, read: tuple[int, int], asked: AskedFiles | None) -> Exchange:
        """What a search knows that reads events of ``[lo, hi)`` ticks, and where it asks.

        A search that knows as many pairs as are remembered asks for no more, but calls functions itself.
        """
        inside = [(AT, ">=", read[0]), (AT, "<", read[1])]
        answers, pairs = [], 0
        for file in self.files:
            if pairs < MOST_PAIRS:
                answers.append((file.key, file.either_way, parquet_rows(file.path, filters=inside)))
                pairs += len(answers[-1][2])
        asks = Asks(asked.keep) if asked is not None and pairs < MOST_PAIRS else None
        return Exchange(Given.of(answers), asks)


class Turns:
    """The turns of searches that ask for pairs: all search, what they ask is answered, and who asked searches again.

    Args:
        tasks: the tasks that do the work.
        patterns: those that ask, by number, with a folder that every task can reach.
    """

    def __init__(self, tasks: Tasks, patterns: Mapping[int, tuple[Pattern, str]]) -> None:
        self._tasks, self._patterns = tasks, patterns
        self._answers: dict[int, list[Answered]] = {number: [] for number in patterns}
        self._asking = set(patterns)

    @property
    def known(self) -> dict[int, Known]:
        """What each pattern that ever asked knows now."""
        found = {}
        for number, some in self._answers.items():
            files = tuple(file for one in some for file in one.files)
            found[number] = Known(files, number in self._asking and len(some) < _MOST_TURNS)
        return found

    def answers(self, asked: Mapping[int, Sequence[PairFile]]) -> dict[int, Answered]:
        """The values of the requested pairs, by pattern; each is evaluated by one task.

        Who is not done though its pattern asks for nothing needs functions that are not asked for, and calls them.

        Args:
            asked: by pattern; the files are removed.
        """
        files = {number: some for number, some in asked.items() if some}
        self._asking = set(files)
        parts = [part for number, some in files.items() for part in self._parts(number, some)]
        found = {number: Answered() for number in files}
        for part, one in zip(parts, self._tasks.map(_answered, parts), strict=True):
            found[part.number] += one
        for number, gave in found.items():
            self._answers[number].append(gave)
        _remove([file for some in files.values() for file in some])
        return found

    def close(self) -> dict[int, list[tuple[float, ...]]]:
        """Remove the answers; give the seconds of the tasks of each turn by pattern."""
        _remove([file for some in self._answers.values() for one in some for file in one.files])
        return {number: [one.seconds for one in some] for number, some in self._answers.items()}

    def _parts(self, number: int, files: Sequence[PairFile]) -> Iterator[_Part]:
        pattern, folder = self._patterns[number]
        calls = {function.name: function for one in pattern.branches for _, function in calls_of(pattern, one)}
        for key in dict.fromkeys(file.key for file in files):
            mine = tuple(file for file in files if file.key == key)
            function, pairs = calls[key.partition(":")[0]], sum(file.pairs for file in mine)
            work = pairs * function.us * 1e-6 / EVALUATION
            many = min(pairs, pieces_of(work, pairs, self._tasks.parallelism))
            bounds = [_HASHES * n // many for n in range(many + 1)]
            for lo, hi in zip(bounds[:-1], bounds[1:], strict=True):
                yield _Part(number, function, folder, mine, lo, hi)


def _answered(part: _Part) -> Answered:
    """What one task answers."""
    began = time.perf_counter()
    inside = [(HASH, ">=", part.lo), (HASH, "<", part.hi)]
    asked = [parquet_rows(file.path, filters=inside) for file in part.files]
    try:
        # A whole number in one file can be a double in another.
        answers = answered(part.function, pa.concat_tables(asked, promote_options="permissive"))
    except ChainlakeError as error:  # a function that fails stops its own pattern, and no other
        return Answered(failure=error)
    if not len(answers):
        return Answered(seconds=(time.perf_counter() - began,))
    path = _new(part.folder, "answers")
    with parquet_writer(path, answers.schema) as writer:
        writer.write_table(answers, row_group_size=_GROUP)
    first = part.files[0]
    return Answered((PairFile(first.key, first.either_way, path, len(answers)),), (time.perf_counter() - began,))


def _remove(files: Sequence[PairFile]) -> None:
    for file in files:
        storage_of(file.path).remove(file.path)


def _new(folder: str, kind: str) -> str:
    # A task can be tried twice, even at the same time; the files of the attempt that returns are the ones that count.
    return f"{folder}/{kind}-{uuid.uuid4().hex}.parquet"
