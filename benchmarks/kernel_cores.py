"""How the search scales to ten times the events, and to two cores.

``python -m benchmarks.kernel_cores [--events N] [--share C]``

First, ten times the events at equal density are searched on one core, measured as in ``benchmarks.kernel``. Then two
cores: the stream is cut into eight equal ranges of decision times, each with the events of its read range, as
detection cuts it for a pattern without a key. Workers (``chainlake.detect.matcher``: Arrow tables in, rows of the match
table out) run in their own processes, each bound to a core, and take all eight or half of them. They have done it
once before, so their start, reading the input, imports and compiling are left out. The exit code is 1 if matches
differ.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from benchmarks.kernel import ours
from benchmarks.kernel_peers import least
from benchmarks.kernel_streams import QUERY, Stream, stream
from chainlake.cep.matches.day_limit import DayLimit
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.pattern_shape import match_shape
from chainlake.cep.search.statistics import Statistics
from chainlake.detect.division.cut import PIECES, Slice, slice_of
from chainlake.detect.matcher import Matcher
from chainlake.schemas.matches import matches_table

PATTERN = compile_pattern(QUERY, columns={"price": pa.float64()})
#: Number of rows in a batch of an Arrow file.
BATCH_ROWS = 10_000


def slices(made: Stream) -> list[Slice]:
    """Equal ranges of the stream's time."""
    bounds = np.linspace(0, int(made.ms[-1]) * 1000 + 1, PIECES + 1).astype(int).tolist()
    return [slice_of(PATTERN, own) for own in zip(bounds, bounds[1:], strict=False)]


def write(made: Stream, folder: Path) -> None:
    """One Arrow file per slice, with its bounds in the name."""
    table = made.table()
    # Ids are as long as the lake's, so that they are stored and hashed in the same way.
    ids, types = pa.array([f"{i:032x}" for i in range(made.n)]), table["type"].cast(pa.string())
    table = table.set_column(0, "event_id", ids).set_column(1, "type", types)
    for number, one in enumerate(slices(made)):
        lo, hi = np.searchsorted(made.ms * 1000, one.read)
        part = table.slice(lo, hi - lo)
        with pa.ipc.new_file(folder / f"{number} {one.own[0]} {one.own[1]}.arrow", part.schema) as file:
            file.write_table(part, BATCH_ROWS)


def work(folder: Path, core: int, numbers: Sequence[int]) -> None:
    """Run a worker: it says that it is ready, waits for a line, works, and says how many matches it found."""
    os.sched_setaffinity(0, {core})
    parts = []
    for file in sorted(folder.glob("*.arrow")):
        number, lo, hi = map(int, file.stem.split())
        if number in numbers:
            parts.append(((lo, hi), pa.ipc.open_file(file.read_bytes()).read_all()))
    schema = matches_table(match_shape(PATTERN, types={"price": pa.float64()})).arrow()
    matcher = Matcher(PATTERN, schema, None)

    def search() -> int:
        limit, found = DayLimit(PATTERN), 0
        for own, events in parts:
            hunt = matcher.hunt(own, Statistics(), limit)
            found += sum(map(len, hunt.add(events))) + sum(map(len, hunt.finish()))
        return found

    # Once before, whole: what is imported, compiled and allocated for the first time is no part of the search.
    search()
    print("ready", flush=True)
    sys.stdin.readline()
    print(search(), flush=True)


def together(folder: Path, shares: Sequence[Sequence[int]]) -> tuple[float, int]:
    """Wall seconds from the start of all workers' work to the end of the last, and their matches."""
    cores = sorted(os.sched_getaffinity(0))
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.kernel_cores", "--worker", str(folder), str(cores[i]), *map(str, share)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for i, share in enumerate(shares)
    ]  # fmt: skip
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    began = time.perf_counter()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    found = [int(worker.stdout.readline()) for worker in workers if worker.stdout is not None]
    seconds = time.perf_counter() - began
    for worker in workers:
        worker.communicate()
    return seconds, sum(found)


def two_cores(made: Stream) -> Iterator[str]:
    """Lines that compare one worker with two."""
    exact = made.exact()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(made, folder)
        numbers = range(PIECES)
        runs = [(together(folder, [numbers]), together(folder, [numbers[::2], numbers[1::2]])) for _ in range(5)]
    if any(found != exact for run in runs for _, found in run):
        raise SystemExit(f"not {exact} matches: {runs}")
    one, two = (min(run[i][0] for run in runs) for i in range(2))
    yield f"{made.name}, {exact:,} matches: one worker {one:.2f} s, two {two:.2f} s, {one / two:.2f} x"


def scaled(n: int, share: float) -> str:
    """A line that compares the search of ``n`` events with that of ten times as many."""
    small, large = (stream(size, share, 5.0) for size in (n, 10 * n))
    seconds = []
    for made in (small, large):
        events, exact = made.table(), made.exact()
        ours(events, "compiled")
        best = least(lambda events=events: ours(events, "compiled")[0], 7)
        if best["matches"] != exact:
            raise SystemExit(f"{made.name}: {best['matches']} matches, not {exact}")
        seconds.append(float(best["wall"] or 0.0))
    return (f"{small.name}: {seconds[0]:.4f} s; {large.name}: {seconds[1]:.4f} s, "
            f"{seconds[1] / seconds[0]:.2f} x")  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel_cores", description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--share", type=float, default=0.10)
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.worker:
        folder, core, *numbers = args.worker
        work(Path(folder), int(core), [int(number) for number in numbers])
        return 0
    for line in two_cores(stream(args.events, args.share, 5.0)):
        print(line, flush=True)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(scaled(args.events // 10, args.share), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
