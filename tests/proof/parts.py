"""The parts of a proof: run one after the other, each timed and told, all of them or those that are asked for."""

from __future__ import annotations

import argparse
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A part of a proof.

    Args:
        name: what it is asked for by.
        body: does it; a line for each fault.
        needs: names of the parts that come before it.
    """

    name: str
    body: Callable[[], Iterable[str]]
    needs: tuple[str, ...] = ()


def add_only(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """The option that asks for parts.

    Args:
        parser: of the proof.
        names: of its parts.
    """

    def chosen(text: str) -> list[str]:
        words = text.split(",")
        wrong = [word for word in words if word not in names]
        if wrong:
            raise argparse.ArgumentTypeError(f"there is no part '{wrong[0]}'; there are {', '.join(names)}")
        return words

    told = f"parts, with commas between, and what these need: {', '.join(names)} (default all)"
    parser.add_argument("--only", type=chosen, default=list(names), metavar="PARTS", help=told)


def run_parts(parts: Sequence[Part], only: Sequence[str]) -> int:
    """Run parts in their order; 0 if none has a fault, else 1."""
    known = {part.name: part for part in parts}
    wanted = set(only)
    for part in reversed(parts):
        if part.name in wanted:
            wanted.update(part.needs)
    begun = time.monotonic()
    failed: dict[str, list[str]] = {}
    for name in known:
        if name not in wanted:
            continue
        since = time.monotonic()
        missing = [need for need in known[name].needs if need in failed]
        found = [f"not run, since '{missing[0]}' failed"] if missing else _faults(known[name])
        now = time.monotonic()
        told = f"{len(found)} faults" if found else "passed"
        print(f"[{now - begun:5.0f} s] {name}: {told} ({now - since:.0f} s)", flush=True)
        if found:
            failed[name] = found
            print("".join(f"    {line}\n" for line in found), end="", flush=True)
    print(f"FAILED: {', '.join(failed)}" if failed else f"all {len(wanted)} parts passed", flush=True)
    return 1 if failed else 0


def _faults(part: Part) -> list[str]:
    found = []
    try:
        for line in part.body():
            found.append(line)
    except Exception:  # the parts after it are still worth a run
        found.append(traceback.format_exc())
    return found
