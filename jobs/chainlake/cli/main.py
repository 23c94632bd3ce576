"""The command line: ``chainlake VERB …``; each verb is a module in a room of ``chainlake.cli.verbs``.

A verb's module is imported only when its verb is called, so that verbs without a JVM stay fast.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import logging
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from chainlake.cli.errors import MissingPackage, UnknownVerb
from chainlake.cli.exits import help_lines
from chainlake.env.processes.ending import end, unexpected
from chainlake.env.processes.work import working_on
from chainlake.env.threads import one_thread_each
from chainlake.env.variables import check_variables, unknown_variables
from chainlake.errors import ChainlakeError, InfrastructureError
from chainlake.paths import Home
from chainlake.terminal import for_people

#: Verb → the line that ``--help`` shows for it.
VERBS = {
    "generate": "write landing files of any size with planted patterns and model changes",
    "ingest": "read the landed files of a source into raw and events",
    "detect": "find the matches of all patterns of a source, for days",
    "monitor": "find the changes of all models of a source, for days",
    "validate": "run the quality suites on published tables",
    "check": "check that every table holds what was written to it; --repair marks what does not",
    "status": "show the state of every definition and day: done, missing, stale, failed",
    "plan": "show what a backfill would compute, read and change, without a JVM",
    "backfill": "compute long history, with one Spark application per chunk of days",
    "restate": "compute stale days again, however old",
    "sql": "query the published tables, without a JVM",
    "contract": "print what readers of a table can rely on, as a data contract (ODCS)",
    "views": "print the statements that make the tables known to Spark or Trino",
    "changes": "print what was added, withdrawn and changed in a table since a version or commit",
    "shadow": "show what an edit of a pattern or model would do to its rows before it goes live",
    "alerts": "send published and withdrawn matches and model changes to webhooks",
    "retire": "end a pattern or model whose file was removed; keep or drop its rows",
    "maintain": "compact tables and remove files past their retention",
    "explain": "show how a pattern is searched, and what a search costs on given files",
    "init": "create a project of your own: definitions, a sample, tests, a CI workflow",
    "match": "find a pattern in files: a grep for events, without a lake",
    "try": "run a model over files, without a lake: its changes and what they cost",
    "backtest": "score how well a pattern finds known occurrences in files, for several parameter values",
    "lint": "check definition files: all errors, warnings, layout",
    "schema": "print the JSON schema of a kind of definition, or a grammar of patterns, for editors",
    "tune": "show what other thresholds of a model would have cost and found; without a JVM",
    "report": "build static pages of the lake: status, matches and models, drawn; without a JVM",
    "picture": "draw a model over days as a PNG: coefficients, errors, messages, profiles; without a JVM",
}


#: The rooms of ``chainlake.cli.verbs``, each with its verbs.
ROOMS = {
    "steps": ("ingest", "detect", "monitor", "validate"),
    "history": ("plan", "backfill", "restate", "shadow", "retire"),
    "lake": (
        "status",
        "check",
        "sql",
        "contract",
        "views",
        "changes",
        "alerts",
        "maintain",
        "tune",
        "picture",
        "report",
    ),  # fmt: skip
    "files": ("init", "generate", "match", "try", "backtest", "explain", "lint", "schema"),
}


#: How many new objects Python makes before it looks for cycles among them. Its default of 700 costs a tenth of a short
#: command: modules and their classes are looked through again and again while others load.
_OBJECTS_BETWEEN_COLLECTIONS = 50_000
#: The command, as every message, example and page spells it.
_COMMAND = "chainlake"
#: Another way to call it, from the folder of a checkout.
_IN_CHECKOUT = "python -m jobs"


def module_of(verb: str) -> str:
    """The name of the module of a verb."""
    (room,) = (room for room, verbs in ROOMS.items() if verb in verbs)
    return f"chainlake.cli.verbs.{room}.{verb}"


def _parser(verb: str | None, module: ModuleType | None) -> argparse.ArgumentParser:
    called = _called()
    if verb is None or module is None:
        lines = "\n".join(f"  {name:<10}{text}" for name, text in VERBS.items())
        parser = argparse.ArgumentParser(
            prog=called,
            usage=f"{called} VERB …",
            description="Event patterns and model changes on Delta tables.",
            epilog=f"verbs:\n{lines}\n\n{called} VERB --help shows the verb's arguments and an example.\n"
            "Days are FROM TO, half-open: one day is 2025-10-01 2025-10-02.\n"
            "exit codes: 0 ok, 1 a difference or failed audit, 2 usage, 3 an error in a definition, 4 input, "
            "5 infrastructure, 130 stopped",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("verb", choices=list(VERBS), metavar="VERB")
        return parser
    parser = argparse.ArgumentParser(
        prog=f"{called} {verb}",
        description=_wrapped(module.HELP),
        epilog="example:\n"
        + re.sub(rf"^  {_COMMAND} ", f"  {called} ", module.EXAMPLE, flags=re.MULTILINE).rstrip("\n")
        + f"\n\n{help_lines(verb)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    return parser


def _called() -> str:
    """How the command was called: by its own name, or as a module from the folder of a checkout."""
    program = Path(sys.argv[0])
    return _IN_CHECKOUT if program.parts[-2:] == ("jobs", "__main__.py") else _COMMAND


def _wrapped(text: str) -> str:
    """``text`` as one paragraph that fits the terminal."""
    width = max(40, shutil.get_terminal_size().columns - 2)
    return textwrap.fill(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)


def main(argv: list[str] | None = None) -> int:
    """Run one verb and return its exit code; its output is safe for a terminal, whatever the data contain."""
    with for_people(), _logged():
        return _run(argv)


class _Lines(logging.Handler):
    """Prints log records to stdout, one line each, like everything else that a verb prints."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), flush=True)


@contextlib.contextmanager
def _logged() -> Iterator[None]:
    """Print what the package logs while a verb runs; the loggers of other packages are left alone."""
    logger, lines = logging.getLogger("chainlake"), _Lines()
    level, propagate = logger.level, logger.propagate
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(lines)
        logger.setLevel(level)
        logger.propagate = propagate


def _run(argv: list[str] | None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    verb = argv[0] if argv and argv[0] in VERBS else None
    if verb is None:
        if argv and not argv[0].startswith("-"):
            return _report(UnknownVerb.of(argv[0], VERBS))
        _parser(None, None).parse_args(argv or ["--help"])
        return 2
    try:
        module = importlib.import_module(module_of(verb))
        args = _parser(verb, module).parse_args(argv[1:])
        check_variables()
        for line in unknown_variables():
            print(f"warning: {line}", file=sys.stderr)
        with working_on([_COMMAND, *argv]):
            return int(module.run(args))
    except ModuleNotFoundError as error:
        return _report(error if error.name is None or error.name.startswith("chainlake") else MissingPackage.of(error))
    except ChainlakeError as error:
        return _report(error)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (head, less) has gone, so there is nobody to print to.
        sys.stderr.close()
        return 0
    except Exception as error:
        return _report(error)


def _report(error: Exception) -> int:
    """Print what went wrong, and return the exit code."""
    found = error
    if isinstance(error, InfrastructureError) or not isinstance(error, ChainlakeError):
        # The user must see the error itself even if the search for its cause fails.
        with contextlib.suppress(Exception):
            from chainlake.lake.upkeep.damage import explained

            found = explained(Home.from_env(), error)
    if not isinstance(found, ChainlakeError):
        return unexpected(found)
    print(f"error: {found}", file=sys.stderr)
    return found.exit_code


def run_verb(verb: str) -> NoReturn:
    """Run ``verb`` with the arguments of this process, and end the process; scripts for ``spark-submit`` call it."""
    _end([verb, *sys.argv[1:]])


def command() -> NoReturn:
    """The installed command ``chainlake``."""
    _end(sys.argv[1:])


def _end(argv: list[str]) -> NoReturn:
    """Run one verb in a process that is its own, and end the process."""
    one_thread_each()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    end(main(argv))
