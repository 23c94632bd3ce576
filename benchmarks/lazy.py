"""The experiments of Lazy 2015, section 7 (docs/papers.md), in their main form: what each automaton costs.

``python -m benchmarks.lazy [--stock FILE… --finance A,B --hitech C,D --rare E --name NAME] [--minutes 20]
[--threshold 0.7] [--events 400000] [--phase 100000] [--only stock|rotating] [--json FILE]
[--pictures docs/reports/pictures]``

1. E against the share of the rare stock for ``SEQ(a, b, c)``: eager, six chains, tree; and the orders that the kernel
   chooses by frequency and by estimated cost.
2. The same for ``SEQ(c, b, a)`` and ``SEQ(a, c, b)``.
3. All costs of docs/automata.md#costs, and peaks of instances as the stream grows.
4. E per 10,000 events on a stream whose rarest type changes.
5. AND, NOT, Kleene: what the papers claim without experiments.

Quotes come from ``data/stock``, or from CSV files with the columns ticker, ts, close. E of chains is the kernel's, and
equals the simulation's (checked in 3 and 5); the tree and the peaks are simulated. The exit code is 1 if two engines
find different numbers of matches, or two ways of counting differ.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.lazy_data import Quotes, quotes, rotating
from chainlake.cep.automata.meter import Costs
from chainlake.cep.automata.simulate import NEGATIONS, simulate, unfit_for
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics

PROJECT = Path(__file__).resolve().parent.parent
CHAINS = tuple("".join(order) for order in permutations("abc"))
SEQUENCES = ("abc", "cba", "acb")
SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
#: Share of the rare stock in experiments 3 and 5, and parts of the stream in experiment 3.
RARE = 0.03
PARTS = (0.25, 0.5, 0.75, 1.0)
EVERY = 10_000
#: Share of the rarest type of the rotating stream, and its pattern.
SHARE = 0.005
CLOSE = (
    "---\nlimits: {matches_per_day: 100000000}\n---\n"
    "PATTERN SEQ(A a, B b, C c) WHERE Abs(a.x - b.x) < 0.2 AND Abs(b.x - c.x) < 0.2 WITHIN 40"
)


class Check:
    """Collects values that should be equal but are not."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def equal(self, what: str, found: dict[str, Any]) -> None:
        """Note a difference among the values of ``found``."""
        if len(set(found.values())) > 1:
            self.wrong.append(f"{what}: {found}")


def compiled(text: str, events: pa.Table) -> Pattern:
    """The pattern, for events whose times are timestamps or whole seconds."""
    strict = not pa.types.is_integer(events.schema.field("ts").type)
    return compile_pattern(text, strict_units=strict)


def counted(pattern: Pattern, events: pa.Table, order: Sequence[str] | None = None, by: str = "cost") -> Statistics:
    """The statistics of a run of the kernel."""
    statistics = Statistics()
    for _ in find(pattern, events, order=order, statistics=statistics, options=SearchOptions(by=by)):
        pass
    return statistics


def sweep(given: Quotes, sequence: str, threshold: float, check: Check) -> list[dict[str, Any]]:
    """E of every automaton for each share of the rare stock (experiments 1 and 2)."""
    rows = []
    for share in SHARES:
        stream = given.with_rare(share)
        text = stream.query(f"SEQ({', '.join(f'Stock {name}' for name in sequence)})", threshold)
        pattern = compiled(text, stream.events)
        runs = {chain: counted(pattern, stream.events, chain) for chain in CHAINS}
        runs["frequency"] = counted(pattern, stream.events, by="frequency")
        runs["cost"] = counted(pattern, stream.events)
        tree = simulate(pattern, stream.events, engine="tree")
        check.equal(f"matches of {sequence}, {share}", {
            "tree": len(tree.bindings), **{name: run.matches for name, run in runs.items()}
        })  # fmt: skip
        found = {name: run.evaluations for name, run in runs.items()}
        rows.append({
            "sequence": sequence, "share": share, "counts": stream.counts(), "matches": runs["cost"].matches,
            "E": {"eager": found[sequence], **found, "tree": tree.costs.evaluations},
            "orders": {name: "".join(runs[name].order[0]) for name in ("frequency", "cost")},
        })  # fmt: skip
    return rows


def peaks(given: Quotes, threshold: float, check: Check) -> list[dict[str, Any]]:
    """All metrics of every automaton on growing parts of the stream (experiment 3)."""
    rows = []
    whole = given.with_rare(RARE)
    for part in PARTS:
        stream = whole.beginning(part)
        pattern = compiled(stream.query("SEQ(Stock a, Stock b, Stock c)", threshold), stream.events)
        runs = {"eager": simulate(pattern, stream.events, engine="eager")}
        runs |= {chain: simulate(pattern, stream.events, order=chain) for chain in CHAINS}
        runs["tree"] = simulate(pattern, stream.events, engine="tree")
        check.equal(f"matches of {part} of the stream", {name: len(run.bindings) for name, run in runs.items()})
        for chain in CHAINS:
            found = counted(pattern, stream.events, chain)
            check.equal(f"E of {chain}", {"kernel": found.evaluations, "run": runs[chain].costs.evaluations})
        costs = {name: asdict(run.costs) for name, run in runs.items()}
        rows.append({"events": len(stream.events), "matches": len(runs["tree"].bindings), "costs": costs})
    return rows


def dynamic(events: int, phase: int, check: Check) -> dict[str, Any]:
    """E per 10,000 events of a stream whose rarest type changes (experiment 4)."""
    table = rotating(events, phase, SHARE)
    pattern = compiled(CLOSE, table)
    every = min(EVERY, phase)
    courses: dict[str, list[Costs]] = {}
    matches, peaks = {}, {}
    for name in (*CHAINS, "tree"):
        engine = {"engine": "tree"} if name == "tree" else {"order": name}
        run = simulate(pattern, table, every=every, **engine)
        courses[name], matches[name], peaks[name] = run.course, len(run.bindings), run.costs
    course = {}
    for name, costs in courses.items():
        totals = [0, *(one.evaluations for one in costs)]
        course[name] = [after - before for before, after in zip(totals, totals[1:], strict=False)]
    # One run per phase, with the order of the least estimated cost, since detection chooses an order for every run.
    by_phase, orders, found = 0, [], 0
    for start in range(0, events, phase):
        own = (start, min(start + phase, events))
        statistics = Statistics()
        for _ in find(pattern, table, own=own, statistics=statistics):
            pass
        by_phase, found = by_phase + statistics.evaluations, found + statistics.matches
        orders.append("".join(statistics.order[0]))
    check.equal("matches of the rotating stream", {**matches, "by phase": found})
    return {
        "events": events, "phase": phase, "every": every, "share": SHARE, "matches": found, "course": course,
        "total": {name: sum(each) for name, each in course.items()} | {"cost order per phase": by_phase},
        "orders": orders, "resting": {name: costs.resting for name, costs in peaks.items()},
        "states": peaks["tree"].states,
    }  # fmt: skip


#: Structures about which the papers make claims without an experiment, and conditions on their other names.
OPERATORS = {
    "conjunction": ("AND(Stock a, Stock b, Stock c)", ""),
    "partial sequence": ("AND(SEQ(Stock a, Stock b), Stock c)", ""),
    "NOT that rejects most": (
        "SEQ(Stock a, Stock b, NOT(Stock n), Stock c)",
        " AND n.ticker IN finance AND Corr(n.history, b.history) > 0",
    ),
    "NOT that rejects few": (
        "SEQ(Stock a, Stock b, NOT(Stock n), Stock c)",
        " AND n.ticker IN finance AND Corr(n.history, b.history) > 0.99",
    ),
    "NOT at the end": (
        "SEQ(Stock a, Stock b, Stock c, NOT(Stock n))",
        " AND n.ticker IN hitech AND Corr(n.history, b.history) < -0.9",
    ),
    "Kleene": (
        "SEQ(Stock a, Stock b, Stock* k, Stock c)",
        " AND k.ticker IN hitech AND k.ts - b.ts <= 4 min AND Corr(k.history, b.history) > 0.8 AND COUNT(k) >= 2",
    ),
}


def operators(given: Quotes, threshold: float, check: Check) -> list[dict[str, Any]]:
    """The chain compared with the eager automaton, and both ways of testing NOT (experiment 5)."""
    stream = given.with_rare(RARE)
    rows = []
    for what, (structure, more) in OPERATORS.items():
        pattern = compiled(stream.query(structure, threshold, more), stream.events)
        negations = NEGATIONS if pattern.branches[0].negated else NEGATIONS[:1]
        runs = {f"chain, {way}": simulate(pattern, stream.events, negation=way) for way in negations}
        for engine in ("eager", "tree"):
            if unfit_for(engine, pattern) is None:
                runs[engine] = simulate(pattern, stream.events, engine=engine)
        check.equal(f"matches of {what}", {name: len(run.bindings) for name, run in runs.items()})
        kernel = counted(pattern, stream.events)
        first = runs[f"chain, {NEGATIONS[0]}"].costs
        check.equal(f"E, E_neg, E_pre of {what}", {
            "kernel": (kernel.evaluations, kernel.evaluations_neg, kernel.evaluations_pre),
            "run": (first.evaluations, first.evaluations_neg, first.evaluations_pre),
        })  # fmt: skip
        rows.append({"what": what, "matches": kernel.matches, "order": "".join(kernel.order[0]),
                     "costs": {name: asdict(run.costs) for name, run in runs.items()}})  # fmt: skip
    return rows


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows as Markdown."""
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else str(cell) for cell in row)} |")


def say_stock(name: str, results: dict[str, Any]) -> None:
    """Print experiments 1, 2, 3 and 5."""
    engines = ("eager", *CHAINS, "tree", "frequency", "cost")
    for rows in results["sweeps"]:
        print(f"\n{name}: E of SEQ({', '.join(rows[0]['sequence'])})")
        table(("f_c", "events of a, b, c", *engines, "matches"), [
            (row["share"], ", ".join(map(str, row["counts"])), *(row["E"][e] for e in engines[:-2]),
             *(f"{row['E'][e]:,} ({row['orders'][e]})" for e in engines[-2:]), row["matches"]) for row in rows
        ])  # fmt: skip
    shown = ("evaluations", "evaluations_neg", "evaluations_pre", "resting", "depth_first", "buffered", "referenced")
    last = results["peaks"][-1]
    print(f"\n{name}: SEQ(a, b, c), f_c {RARE}, {last['events']:,} events, {last['matches']:,} matches")
    table(("", "E", "E_neg", "E_pre", "I_rest", "I_dfs", "B_in", "B_all", "states"), [
        (engine, *(costs[key] for key in (*shown, "states"))) for engine, costs in last["costs"].items()
    ])  # fmt: skip
    print("\nI_rest as the stream grows")
    table(("events", *last["costs"]), [
        (row["events"], *(costs["resting"] for costs in row["costs"].values())) for row in results["peaks"]
    ])  # fmt: skip
    print(f"\n{name}: other operators, f_c {RARE}")
    table(("pattern", "engine", "E", "E_neg", "E_pre", "I_rest", "I_dfs", "B_in", "B_all", "matches"), [
        (row["what"], engine, *(costs[key] for key in shown), row["matches"])
        for row in results["operators"] for engine, costs in row["costs"].items()
    ])  # fmt: skip


def say_dynamic(results: dict[str, Any]) -> None:
    """Print experiment 4: means per phase, and totals."""
    every = results["every"]
    size = results["phase"] // every
    print(f"\nrotating stream: {results['events']:,} events, {results['matches']:,} matches; E per {every:,} events")
    phases = range(0, results["events"] // every, size)
    table(("engine", *(f"phase {i + 1}" for i in range(len(phases))), "total", "I_rest"), [
        (engine, *(round(sum(course[at : at + size]) / len(course[at : at + size])) for at in phases),
         results["total"][engine], results["resting"][engine]) for engine, course in results["course"].items()
    ])  # fmt: skip
    total = results["total"]["cost order per phase"]
    print(f"cost order per phase: {total:,} in all ({', '.join(results['orders'])}); states of the tree at most "
          f"{results['states']}")  # fmt: skip


def main() -> int:
    """Run, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stock", type=Path, nargs="+", default=sorted((PROJECT / "data/stock").glob("*.csv.gz")))
    parser.add_argument("--finance", default="AIG,BAC")
    parser.add_argument("--hitech", default="IBM")
    parser.add_argument("--rare", default="SPY")
    parser.add_argument("--name", default="minutes")
    parser.add_argument("--minutes", type=int, default=20)
    parser.add_argument("--threshold", type=float, default=0.7)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--phase", type=int, default=100_000)
    parser.add_argument("--only", choices=("stock", "rotating"))
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    check, results = Check(), {}
    began = time.process_time()
    if args.only != "rotating":
        given = quotes(args.stock, args.finance.split(","), args.hitech.split(","), args.rare, args.minutes)
        results["stock"] = {
            "sweeps": [sweep(given, sequence, args.threshold, check) for sequence in SEQUENCES],
            "peaks": peaks(given, args.threshold, check),
            "operators": operators(given, args.threshold, check),
        }
        say_stock(args.name, results["stock"])
    if args.only != "stock":
        results["rotating"] = dynamic(args.events, args.phase, check)
        say_dynamic(results["rotating"])
    print(f"\n{time.process_time() - began:.0f} s of CPU")
    if args.pictures is not None:
        from benchmarks.lazy_pictures import draw

        draw(results, args.name, args.pictures)
    if args.json is not None:
        args.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    for line in check.wrong:
        print(f"DIFFERENT {line}", file=sys.stderr)
    return 1 if check.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
