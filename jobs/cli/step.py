"""What the verbs that run a step share: their arguments, and the result as JSON for whoever started them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jobs.days import Days
from jobs.errors import ChainlakeError, UsageError
from jobs.paths import Home


def add_step_arguments(parser: argparse.ArgumentParser) -> None:
    """SOURCE FROM TO, --run-id and --result."""
    parser.add_argument("source", metavar="SOURCE", help="name of the source: a file of dags/config/sources/")
    parser.add_argument("start", metavar="FROM", help="first day, YYYY-MM-DD (UTC)")
    parser.add_argument("end", metavar="TO", help="day after the last, YYYY-MM-DD (UTC)")
    parser.add_argument("--run-id", default=None, help="id under which ops.runs logs the run; made up if not given")
    parser.add_argument("--result", type=Path, default=None, metavar="FILE", help="write the result there as JSON")


def run_step(args: argparse.Namespace, verb: str, step: Callable[..., dict[str, Any]], **options: Any) -> int:
    """Call ``step(home, source, days, run_id=…, **options)`` and report its result.

    The result (or the one-line reason of a failure) is printed as the last line and written to ``--result``.
    """
    from jobs.lake.runs import new_run_id

    days = Days.parse(args.start, args.end)
    if args.result is not None and (args.result.is_dir() or not args.result.parent.is_dir()):
        raise UsageError("the result cannot be written there", file=args.result, hint="Name a file in a folder.")
    run_id = args.run_id or new_run_id(verb)
    try:
        result = step(Home.from_env(), args.source, days, run_id=run_id, **options)
    except ChainlakeError as error:
        _write(args.result, {"error": error.summary, "exit_code": error.exit_code})
        raise
    _write(args.result, result)
    counts = ", ".join(f"{key} {_short(value)}" for key, value in result.items())
    print(f"{verb} {args.source} {days}: {counts if any(result.values()) else 'nothing to do'}")
    return 0


def _short(value: Any) -> str:
    return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)


def _write(path: Path | None, result: dict[str, Any]) -> None:
    if path is not None:
        path.write_text(json.dumps(result, default=str))
