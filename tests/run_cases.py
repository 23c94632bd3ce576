"""``python -m tests.run_cases FILE…``: cases of a file through the product's public functions.

The kind of a file is told from its content: pattern cases go through ``chainlake.cep.match``, monitor cases through
``tests.monitor_cases``, cases of contexts and of rankings through ``match``, too; the latter also day by day.
With ``--engine`` pattern cases go through machine code instead, or through an automaton in event order
(``chainlake.cep.automata.simulate``) with NOT in both ways of testing it, or through files and the tasks of a run, cut
into slices, in this process or on Spark. Each difference is printed, and what was skipped and why; then the number of
runs, and ``N cases, M different, K not supported yet``. The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice, permutations
from math import factorial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainlake.cep.pattern import Pattern
    from chainlake.run.tasks import Tasks

#: Binding orders tried per pattern case with ``--orders all``.
MOST_ORDERS = 120
#: The kernel as it chooses its backend, and its backends.
KERNELS = {"kernel": "auto", "numpy": "numpy", "compiled": "compiled"}
#: The tasks of a run, in this process and on Spark.
TASKS = ("tasks", "spark")
#: Besides them the automata of ``chainlake.cep.automata.simulate``.
ENGINES = (*KERNELS, "eager", "chain", "tree", *TASKS)


@dataclass
class Result:
    """What came of one case: differences, or None if it is of a kind that is not supported yet; runs and remarks."""

    name: str
    differences: list[str] | None
    skipped: str | None = None
    runs: int = 1


def run_file(path: Path, *, all_orders: bool = False, engine: str = "kernel") -> list[Result]:
    """Run all cases of one file.

    Raises:
        ValueError: the file holds no cases of a known form.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    cases = content["cases"] if isinstance(content, dict) and "cases" in content else content
    if not isinstance(cases, list) or not cases or not all(isinstance(case, dict) for case in cases):
        raise ValueError("there are no cases in it")
    if all({"pattern", "events", "expected"} <= case.keys() for case in cases):
        return [pattern_case(case, all_orders=all_orders, engine=engine) for case in cases]
    if engine not in KERNELS:
        raise ValueError(f"its cases are not for the engine {engine}")
    if all({"kind", "expect"} <= case.keys() for case in cases):
        return list(_monitor_cases(cases, content.get("tolerance", {})))
    if all({"events", "query", "expect"} <= case.keys() for case in cases):
        return [_other_case(case, KERNELS[engine]) for case in cases]
    raise ValueError("its cases are of no known form")


def _other_case(case: dict[str, Any], backend: str) -> Result:
    """A case of contexts or of rankings, in several orders of rows and binding."""
    from chainlake.cep.library import match
    from chainlake.cep.pattern import compile_pattern
    from tests.cep.context_cases import events_of, text_of

    if "rows" in case["expect"]:
        from tests.cep.ranking_cases import case_differences

        count, found = case_differences(case, backend)
        return Result(case["id"], found, runs=count)
    if "fired" not in case["expect"]:
        return Result(case["id"], None, runs=0)
    text, rows, wanted = text_of(case["query"]), events_of(case), [row["match"] for row in case["expect"]["fired"]]
    names = [name.name for name in compile_pattern(text, strict_units=False).names]
    total = case["query"].get("order") == "total"
    draw, differences = random.Random(case["id"]), []
    for run in range(4):
        found = list(match(text, rows, order=names, backend=backend, ties_in_order=total))
        if found != wanted:
            differences.append(f"run {run}: {found} instead of {wanted}")
        rows, names = draw.sample(rows, len(rows)), draw.sample(names, len(names))
    return Result(case["id"], differences, runs=4)


def pattern_case(case: dict[str, Any], *, all_orders: bool = False, engine: str = "kernel") -> Result:
    """One pattern case, in the engine's own order or in every order of the positive names."""
    from chainlake.errors import DefinitionError

    try:
        return _ran(case, all_orders, engine)
    except DefinitionError as error:
        return Result(case["name"], [f"refused: {error.what}"])


def _ran(case: dict[str, Any], all_orders: bool, engine: str) -> Result:
    from chainlake.cep.automata.simulate import unfit_for
    from chainlake.cep.compiling.tail import UNBOUNDED
    from chainlake.cep.pattern import compile_pattern
    from chainlake.definitions.derived import Series
    from tests.task_cases import STREAM

    series = Series(case.get("key") or (STREAM if engine in TASKS else None), ())
    pattern = compile_pattern(case["pattern"], params=case.get("params"), strict_units=False, series=series)
    reason = None if engine in (*KERNELS, *TASKS) else unfit_for(engine, pattern)
    if engine in TASKS and pattern.window_us >= UNBOUNDED:
        # A lake asks for the longest stretch; a tick is what a second is in a pattern's text.
        ticks = [event["ts"] for event in case["events"]]
        longest = f"---\nlimits: {{longest: {max(ticks) - min(ticks) + 1} s}}\n---\n"
        pattern = compile_pattern(
            longest + case["pattern"], params=case.get("params"), strict_units=False, series=series
        )
    if reason is not None:
        return Result(case["name"], [], reason, 0)
    wanted = sorted(json.dumps(m, sort_keys=True) for m in case["expected"])
    differences = []
    runs = 0
    orders, skipped = _orders(pattern, all_orders and engine in (*KERNELS, "chain"))
    for how, found in _runs(case, pattern, orders, engine):
        runs += 1
        if found != wanted:
            missing = [m for m in wanted if m not in found]
            extra = [m for m in found if m not in wanted or found.count(m) > 1]
            differences.append(f"{how}missing {missing or 'none'}, not expected {extra or 'none'}")
    return Result(case["name"], differences, skipped, runs)


def _orders(pattern: Pattern, every: bool) -> tuple[list[list[str] | None], str | None]:
    """The binding orders to try (None: the engine's own), each once, and what is left out."""
    from chainlake.cep.plan.order import given_order

    if not every:
        return [None], None
    names = [name.name for name in pattern.names]
    found: dict[tuple[tuple[str, ...], ...], list[str] | None] = {}
    for order in islice(permutations(names), MOST_ORDERS):
        # orders that differ only in where a repeated name stands are the same: it is bound last
        found.setdefault(tuple(given_order(branch, order) for branch in pattern.branches), list(order))
    left = f"{MOST_ORDERS} of {factorial(len(names))} orders tried" if factorial(len(names)) > MOST_ORDERS else None
    return [None, *found.values()], left


def _runs(
    case: dict[str, Any], pattern: Pattern, orders: list[list[str] | None], engine: str
) -> Iterator[tuple[str, list[str]]]:
    """How each run was made, and what it found, as sorted texts."""
    from chainlake.cep.automata.simulate import NEGATIONS, simulate
    from chainlake.cep.library import from_dicts, match

    negated = any(branch.negated for branch in pattern.branches)
    draw = random.Random(case["name"])
    for order in orders:
        how = f"order {', '.join(order)}: " if order else ""
        if engine in KERNELS:
            rows = case["events"]
            for shuffled in ("", "shuffled rows: "):
                options = {"backend": KERNELS[engine], "key": case.get("key")}
                matches = match(case["pattern"], rows, case.get("params"), order, **options)
                yield how + shuffled, sorted(json.dumps(m, sort_keys=True) for m in matches)
                rows = draw.sample(rows, len(rows))
            continue
        if engine in TASKS:
            from tests.task_cases import STREAM, task_matches

            yield how, task_matches(pattern, case["events"], _tasks(engine), case.get("key") or STREAM)
            continue
        table, ids = from_dicts(case["events"])
        for negation in NEGATIONS if negated else NEGATIONS[:1]:
            outcome = simulate(pattern, table, engine=engine, order=order, negation=negation)
            texts = sorted(json.dumps(m, sort_keys=True) for m in outcome.matches(pattern, ids))
            yield how + (f"{negation}: " if negated else ""), texts


@cache
def _tasks(engine: str) -> Tasks:
    """Who does the work of a run, for all cases."""
    from chainlake.paths import Home
    from chainlake.run.tasks import LocalTasks, SparkTasks

    return SparkTasks(Home.from_env(), "cases") if engine == "spark" else LocalTasks()


def _monitor_cases(cases: list[dict[str, Any]], tolerance: dict[str, Any]) -> Iterator[Result]:
    from tests.monitor_cases import run_monitor_case

    for case in cases:
        yield Result(case["id"], run_monitor_case(case, tolerance))


def main(argv: list[str] | None = None) -> int:
    """Run the files named on the command line and print the outcome."""
    parser = argparse.ArgumentParser(prog="python -m tests.run_cases", description=__doc__)
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    parser.add_argument(
        "--orders", choices=("best", "all"), default="best", help="binding orders of pattern cases (default: best)"
    )
    parser.add_argument(
        "--engine", choices=ENGINES, default="kernel", help="what runs pattern cases (default: the product's kernel)"
    )
    args = parser.parse_args(argv)
    results: list[Result] = []
    for path in args.files:
        try:
            found = run_file(path, all_orders=args.orders == "all", engine=args.engine)
        except (OSError, ValueError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 4
        results += found
        for result in found:
            for difference in result.differences or ():
                print(f"{path.name} {result.name}: {difference}")
            if result.skipped:
                print(f"{path.name} {result.name}: {'' if result.runs else 'skipped, '}{result.skipped}")
        unsupported = sum(result.differences is None for result in found)
        if unsupported:
            print(f"{path.name}: {unsupported} of {len(found)} cases are of a kind that is not supported yet")
    skipped = sum(result.runs == 0 and result.differences is not None for result in results)
    print(f"{sum(result.runs for result in results)} runs of the engine {args.engine}, {skipped} cases skipped")
    different = sum(bool(result.differences) for result in results)
    unsupported = sum(result.differences is None for result in results)
    print(f"{len(results)} cases, {different} different, {unsupported} not supported yet")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
