"""How our processes end: one line for the user, and the exit code."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from datetime import UTC, datetime
from typing import NoReturn

from chainlake.env.private import marked_folder
from chainlake.errors import ChainlakeError, InfrastructureError
from chainlake.paths import Home


def unexpected(error: BaseException) -> int:
    """Print one line for the user, and write the stack to a file for debugging; returns the exit code."""
    print(f"error: {_first_line(error)}\nhint: {stack_kept(error)}.", file=sys.stderr)
    return InfrastructureError.exit_code


def reason_with_stack(error: Exception) -> str:
    """One line that says why something failed that work can continue without; the stack of an unexpected error is
    kept.
    """
    if isinstance(error, ChainlakeError):
        return error.summary
    return f"{_first_line(error)} ({stack_kept(error)})"


def _first_line(error: BaseException) -> str:
    return f"unexpected {type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}"


def stack_kept(error: BaseException) -> str:
    """Write the stack of an error to a file; returns a string that says where it is, or why it could not be written."""
    try:
        folder = marked_folder(Home.from_env().logs)
        path = folder / f"error-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.txt"
        path.write_text("".join(traceback.format_exception(error)))
    except (OSError, InfrastructureError) as unwritable:
        return f"The stack trace could not be kept: {unwritable}"
    return f"The stack trace is in {path}"


def end(code: int) -> NoReturn:
    """End the process with ``code``, without Python's teardown.

    A pool thread of Arrow may still hold a file handle of deltalake, which is a Python object, and ask for the
    interpreter during its teardown. Python 3.11 ends such a thread in a way that aborts the process
    (https://github.com/PyO3/pyo3/pull/4874), which would turn a finished run into a failed one. On a busy machine this
    happened to one in thirty processes that only read a table by ``DeltaTable.to_pyarrow_dataset``.
    """
    for stream in (sys.stdout, sys.stderr):
        # The reader of a pipe may have gone, which main() has already handled.
        with contextlib.suppress(BrokenPipeError, ValueError):
            stream.flush()
    os._exit(code)
