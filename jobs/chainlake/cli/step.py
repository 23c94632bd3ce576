"""What the verbs that run a step share: their arguments, and their result as JSON for the caller."""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from chainlake.cli.errors import BadTarget
from chainlake.cli.named import name_of
from chainlake.days import Days
from chainlake.definitions.source import require_source
from chainlake.errors import ChainlakeError, UsageError
from chainlake.paths import Home
from chainlake.run.results import counts_line

#: Keys of the counts of files that a step left, and how many of these files its last line names.
_LEFT = ("unread", "waiting")
_NAMED = 5


def add_step_arguments(parser: argparse.ArgumentParser) -> None:
    """Add SOURCE FROM TO, --run-id and --result."""
    parser.add_argument(
        "source", metavar="SOURCE", type=name_of("source"), help="name of the source: a file of dags/config/sources/"
    )
    parser.add_argument("start", metavar="FROM", help="first day, YYYY-MM-DD (UTC)")
    parser.add_argument("end", metavar="TO", help="day after the last, YYYY-MM-DD (UTC)")
    parser.add_argument("--run-id", default=None, help="run id recorded in ops.runs; generated if omitted")
    parser.add_argument(
        "--result", type=Path, default=None, metavar="FILE", help="file to write the result to, as JSON"
    )


def call_step(args: argparse.Namespace, verb: str, step: Callable[..., Mapping[str, Any]], **options: Any) -> int:
    """Call ``step(home, source, days, run_id=…, **options)`` and report its result.

    The result, or the reason of a failure in one line, is written to ``--result``; the result is also printed as the
    last line. A step that is done except for files that it names prints its result and then fails.
    """
    from chainlake.ingest.landing.outcomes import FilesUnread, FilesWaiting
    from chainlake.lake.records.runs import LOG, code_version, new_run_id
    from chainlake.report.make import after_step
    from chainlake.run.attempts import Attempt, attempted

    days = Days.parse(args.start, args.end)
    if args.result is not None and (args.result.is_dir() or not args.result.parent.is_dir()):
        raise BadTarget.result(args.result)
    home, began = Home.from_env(), time.monotonic()
    try:
        require_source(home, args.source)
    except UsageError as error:
        _write(args.result, {"error": error.summary, "exit_code": error.exit_code})
        raise
    run_id = args.run_id or new_run_id(verb)
    attempt = Attempt.now(run_id, verb, args.source, days, options.get("patterns") or options.get("models"))
    LOG.info("%s %s %s: run %s, chainlake %s", verb, args.source, days, run_id, code_version())
    try:
        with _lineage(home, args.source, verb, run_id), attempted(home, attempt):
            result = step(home, args.source, days, run_id=run_id, **options)
    except (FilesWaiting, FilesUnread) as error:
        # Everything except these files is done, so what was done is printed as well.
        _write(args.result, {**error.result, "error": error.summary, "exit_code": error.exit_code})
        after_step(home, time.monotonic() - began)
        print(f"{verb} {args.source} {days}: {_summary(verb, error.result)}")
        raise
    except ChainlakeError as error:
        _write(args.result, {"error": error.summary, "exit_code": error.exit_code})
        after_step(home, time.monotonic() - began)
        raise
    _write(args.result, result)
    if any(result.values()):
        after_step(home, time.monotonic() - began)
    print(f"{verb} {args.source} {days}: {_summary(verb, result)}")
    return 0


@contextlib.contextmanager
def _lineage(home: Home, source: str, verb: str, run_id: str) -> Iterator[None]:
    """Send the lineage of what is done inside, however it ends, if a transport of OpenLineage is configured."""
    from chainlake.lineage import send

    try:
        yield
    finally:
        if send.wanted():
            send.tell(home, source, verb, run_id)


def _summary(verb: str, result: Mapping[str, Any]) -> str:
    """Says what was done, and which files were left."""
    left = {key: result[key] for key in _LEFT if result.get(key)}
    counts = {key: value for key, value in result.items() if key not in (*_LEFT, "left")}
    shown = {key: _short(value) for key, value in counts.items()}
    parts = [counts_line(shown, verb) if any(counts.values()) else "nothing to do"]
    parts += [f"{key} {number}" for key, number in left.items()]
    if left:
        names = result["left"][:_NAMED]
        parts[-1] += f" ({'; '.join(names)}{'; …' if sum(left.values()) > len(names) else ''})"
    return ", ".join(parts)


def _short(value: Any) -> str:
    """A number as it is; several days in words, since a year of them would hide all else."""
    if isinstance(value, list) and len(value) > 1:
        days = [date.fromisoformat(day) for day in value]
        within = "from" if (max(days) - min(days)).days == len(days) - 1 else "between"
        return f"{len(days)} {within} {min(days)} {'to' if within == 'from' else 'and'} {max(days)}"
    return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)


def _write(path: Path | None, result: Mapping[str, Any]) -> None:
    if path is not None:
        path.write_text(json.dumps(result, default=str))
