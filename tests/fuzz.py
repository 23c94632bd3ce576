"""``python -m tests.fuzz --seconds 60``: random patterns and streams on both backends against the definition, random
queries of the whole language, then landed files damaged at random against the parser's laws.

Each pattern meets several streams and two binding orders. Wanted are the matches of ``tests.cep.brute_force``, and
equal counts (E, E_neg, E_pre) on both backends. Kernels run in the Python interpreter, every fiftieth pattern's as
machine code too; and with every pattern one of ``tests.cep.shapes``, whose kernels are compiled once, runs as machine
code with numbers and a stream of its own. The seed of a difference is printed, ``--seed`` runs it again, and the exit
code is 1.

Queries of the whole language, each with a history (``tests.cep.language_oracle``), have as many seconds as patterns:
both backends, interpreted, shuffled rows, a random order, and cuts of history; ``--language-seed`` runs one again and
shows the smallest pair on which it differs. Ranked queries (``tests.cep.ranking_by_definition``) share these seconds,
by every strategy that is allowed, on both backends; ``--ranking-seed`` runs one again.

The laws of files are in ``tests.ingest.mutations``. They have half of the seconds, or ``--files 10000`` says how many
there are; ``--file-seed`` runs one again.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chainlake.cep.library import as_dicts, from_dicts
from chainlake.cep.pattern import compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from chainlake.errors import DefinitionError
from tests.cep.brute_force import brute_force
from tests.cep.interpreted import always_by_value, always_limited, always_paired, no_compiler
from tests.cep.language_oracle.against import difference
from tests.cep.language_oracle.generate import pair as language_pair
from tests.cep.language_oracle.smaller import smallest
from tests.cep.ranking_cases import random_differences as ranking_differences
from tests.cep.ranking_cases import used
from tests.cep.shapes import PATTERNS, pair
from tests.cep.strategies import Random, query, stream, text_of
from tests.ingest import mutations

#: Streams per pattern.
STREAMS = 4


@dataclass
class Outcome:
    """What a pattern's runs came to: pairs of pattern and stream, those with matches, and a difference, if any."""

    pairs: int = 0
    with_matches: int = 0
    difference: str | None = None


def canonical(matches: Any) -> list[str]:
    """Matches as sorted texts, duplicates kept."""
    return sorted(json.dumps(m, sort_keys=True) for m in matches)


def run(seed: int, *, machine_code: bool = False, by_value: bool = False) -> Outcome:
    """One random pattern on some random streams.

    Args:
        seed: makes the pattern and the streams.
        machine_code: compile its kernels, else interpret them.
        by_value: search by value wherever a clause allows it, however few the events; every second seed leaves
            out what cannot pass.
    """
    pick = Random(seed)
    made = query(pick)
    found = Outcome()
    try:
        pattern = compile_pattern(text_of(made), strict_units=False)
    except DefinitionError:
        return found
    names = [name.name for name in pattern.names]
    with ExitStack() as stack:
        if not machine_code:
            stack.enter_context(no_compiler())
        if by_value:
            stack.enter_context(always_by_value())
            if seed % 2:
                stack.enter_context(always_limited())
        if seed % 3:
            stack.enter_context(always_paired())
        for _ in range(STREAMS):
            events = stream(pick, 8)
            wanted = canonical(brute_force(made, events))
            table, ids = from_dicts(events)
            found.pairs += 1
            found.with_matches += bool(wanted)
            for order in (None, pick.shuffled(names)):
                counts = {}
                orders = None
                for backend in ("numpy", "compiled"):
                    statistics = Statistics()
                    batches = find(
                        pattern, table, order=order, backend=backend, statistics=statistics,
                        options=SearchOptions(orders=orders, block_rows=pick.one((1, 2, 5, 1000))),
                    )  # fmt: skip
                    matches = canonical(m for batch in batches for m in as_dicts(pattern, batch, ids))
                    # Each backend would choose an order of its own, and counts belong to an order.
                    orders = statistics.order
                    counts[backend] = (
                        statistics.evaluations, statistics.evaluations_neg, statistics.evaluations_pre
                    )  # fmt: skip
                    if matches != wanted:
                        how = f"{backend}, order {order}, {text_of(made)}\n  on {events}"
                        found.difference = f"{how}\n  found {matches}\n  not {wanted}"
                        return found
                if counts["numpy"] != counts["compiled"]:
                    found.difference = f"order {order}, {text_of(made)}\n  on {events}\n  counts {counts}"
                    return found
    return found


def run_shape(seed: int) -> Outcome:
    """One of the patterns of ``tests.cep.shapes`` with numbers and a stream of a seed, as machine code."""
    name = list(PATTERNS)[seed % len(PATTERNS)]
    one = pair(name, seed, nulls=seed % 3 != 0)
    order = one.names if seed % 2 else one.names[::-1]
    by_numpy, numpy_counts = one.found("numpy", order=order)
    compiled, counts = one.found("compiled", order=order)
    same = numpy_counts.evaluations == counts.evaluations and numpy_counts.evaluations_neg == counts.evaluations_neg
    if by_numpy == compiled == one.wanted and same and numpy_counts.evaluations_pre == counts.evaluations_pre:
        return Outcome(1, int(bool(one.wanted)))
    what = f"{name}, order {order}, {text_of(one.query)}\n  on {one.table.to_pylist()}\n  numpy {by_numpy}"
    return Outcome(1, 1, f"{what}\n  compiled {compiled}\n  not {one.wanted}\n  counts {numpy_counts} {counts}")


def run_language(seed: int, *, small: bool = False) -> Outcome:
    """One query of the whole language with a history; ``small``: a difference is shown on the smallest pair."""
    one = language_pair(seed)
    backends = ("numpy", "compiled")
    with no_compiler():
        told = difference(one, backends)
        if told is not None and small:
            told = difference(smallest(one, lambda less: difference(less, backends) is not None), backends)
    return Outcome(1, int(bool(one.wanted)), told)


def main(argv: list[str] | None = None) -> int:
    """Run for a time, or one seed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default 60)")
    parser.add_argument("--seed", type=int, help="the pattern of this seed alone, interpreted and as machine code")
    parser.add_argument("--files", type=int, help="how many files (default: as many as half of the seconds take)")
    parser.add_argument("--language-seed", type=int, help="the query of the whole language of this seed alone")
    parser.add_argument("--ranking-seed", type=int, help="the ranked query of this seed alone")
    parser.add_argument("--file-seed", type=int, help="the file of this seed alone")
    args = parser.parse_args(argv)
    first = random.SystemRandom().randrange(2**40)
    if args.file_seed is not None:
        return files(args.file_seed, 1, 0.0)
    if args.language_seed is not None:
        found = run_language(args.language_seed, small=True)
        print(f"language {found.difference or 'seed: no difference'}")
        return 1 if found.difference is not None else 0
    if args.ranking_seed is not None:
        return rankings(args.ranking_seed, 0.0)
    mine = args.seconds / 2 if args.files is None else args.seconds
    code = patterns(args.seed, first, mine / 2)
    if code or args.seed is not None:
        return code
    return language(first, mine / 4) or rankings(first, mine / 4) or files(first, args.files, args.seconds / 2)


def patterns(only: int | None, first: int, seconds: float) -> int:
    """Patterns from the seed ``first`` on for a time, or ``only`` one; the exit code."""
    end = time.monotonic() + seconds
    pairs = with_matches = count = as_machine_code = 0
    while only is not None or time.monotonic() < end:
        seed = only if only is not None else first + count
        for machine_code in (False, True) if only is not None or count % 50 == 0 else (False,):
            found = run(seed, machine_code=machine_code, by_value=seed % 2 == 0)
            pairs += found.pairs
            with_matches += found.with_matches
            if found.difference is not None:
                print(f"seed {seed}{' as machine code' if machine_code else ''}: {found.difference}")
                return 1
        found = run_shape(seed)
        as_machine_code += found.pairs
        if found.difference is not None:
            print(f"seed {seed} as machine code: {found.difference}")
            return 1
        count += 1
        if only is not None:
            break
    print(f"{count} patterns, {pairs} pairs, {with_matches} of them with matches, {as_machine_code} pairs of the "
          "same few patterns as machine code; no difference")  # fmt: skip
    return 0


def language(first: int, seconds: float) -> int:
    """Queries of the whole language from the seed ``first`` on for a time; the exit code."""
    end = time.monotonic() + seconds
    pairs = with_matches = 0
    while time.monotonic() < end:
        found = run_language(first + pairs)
        pairs += 1
        with_matches += found.with_matches
        if found.difference is not None:
            print(f"language {found.difference}")
            return 1
    print(f"{pairs} queries of the whole language, {with_matches} of them with matches; no difference")
    return 0


def rankings(first: int, seconds: float) -> int:
    """Ranked queries from the seed ``first`` on for a time, at least one, by every strategy; the exit code."""
    end, count = time.monotonic() + seconds, 0
    while not count or time.monotonic() < end:
        seed = first + count
        wrong = next(ranking_differences(seed), None)
        count += 1
        if wrong is not None:
            print(f"ranking seed {seed}: {wrong}")
            return 1
    print(f"{count} ranked queries, searched {dict(used)} times by each strategy; no difference")
    return 0


def files(first: int, count: int | None, seconds: float) -> int:
    """Damaged files from the seed ``first`` on: ``count`` of them, or for a time; the exit code."""
    end = time.monotonic() + seconds
    done = 0
    with tempfile.TemporaryDirectory() as folder:
        while done < count if count is not None else time.monotonic() < end:
            wrong = mutations.run(first + done, Path(folder))
            if wrong is not None:
                print(f"file seed {first + done}: {wrong}")
                return 1
            done += 1
    print(f"{done} damaged files from file seed {first}; no law is broken")
    return 0


if __name__ == "__main__":
    sys.exit(main())
