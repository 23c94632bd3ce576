"""``python -m tests.run_cases FILE…``: handed cases through the product's public functions.

The kind of a file is told from its content: pattern cases go through ``jobs.cep.match``, monitor cases through
``tests.monitor_cases``; cases of ranked queries and of contexts count as not supported yet. Each difference is printed,
then ``N cases, M different, K not supported yet``; the exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, permutations
from math import factorial
from pathlib import Path
from typing import Any

#: Binding orders tried per pattern case with ``--orders all``.
MOST_ORDERS = 120


@dataclass
class Result:
    """What came of one case: differences, or None if it is of a kind that is not supported yet; and remarks."""

    name: str
    differences: list[str] | None
    skipped: str | None = None


def run_file(path: Path, *, all_orders: bool = False) -> list[Result]:
    """Run all cases of one file.

    Raises:
        ValueError: the file holds no cases of a known form.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    cases = content["cases"] if isinstance(content, dict) and "cases" in content else content
    if not isinstance(cases, list) or not cases or not all(isinstance(case, dict) for case in cases):
        raise ValueError("there are no cases in it")
    if all({"pattern", "events", "expected"} <= case.keys() for case in cases):
        return [pattern_case(case, all_orders=all_orders) for case in cases]
    if all({"kind", "expect"} <= case.keys() for case in cases):
        return list(_monitor_cases(cases, content.get("tolerance", {})))
    if all({"events", "query", "expect"} <= case.keys() for case in cases):
        return [Result(case["id"], None) for case in cases]
    raise ValueError("its cases are of no known form")


def pattern_case(case: dict[str, Any], *, all_orders: bool = False) -> Result:
    """One pattern case, in the engine's own order or in every order of the positive names."""
    from jobs.cep import compile_pattern, match

    orders: list[list[str] | None] = [None]
    skipped = None
    if all_orders:
        pattern = compile_pattern(case["pattern"], params=case.get("params"), strict_units=False)
        names = [name.name for name in pattern.names]
        orders += [list(order) for order in islice(permutations(names), MOST_ORDERS)]
        if factorial(len(names)) > MOST_ORDERS:
            skipped = f"{MOST_ORDERS} of {factorial(len(names))} orders tried"
    wanted = sorted(json.dumps(m, sort_keys=True) for m in case["expected"])
    differences = []
    for order in orders:
        found = sorted(
            json.dumps(m, sort_keys=True) for m in match(case["pattern"], case["events"], case.get("params"), order)
        )
        if found != wanted:
            missing = [m for m in wanted if m not in found]
            extra = [m for m in found if m not in wanted or found.count(m) > 1]
            where = f"order {', '.join(order)}: " if order else ""
            differences.append(f"{where}missing {missing or 'none'}, not expected {extra or 'none'}")
    return Result(case["name"], differences, skipped)


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
    args = parser.parse_args(argv)
    results: list[Result] = []
    for path in args.files:
        try:
            found = run_file(path, all_orders=args.orders == "all")
        except (OSError, ValueError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 4
        results += found
        for result in found:
            for difference in result.differences or ():
                print(f"{path.name} {result.name}: {difference}")
            if result.skipped:
                print(f"{path.name} {result.name}: {result.skipped}")
        unsupported = sum(result.differences is None for result in found)
        if unsupported:
            print(f"{path.name}: {unsupported} of {len(found)} cases are of a kind that is not supported yet")
    different = sum(bool(result.differences) for result in results)
    unsupported = sum(result.differences is None for result in results)
    print(f"{len(results)} cases, {different} different, {unsupported} not supported yet")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
