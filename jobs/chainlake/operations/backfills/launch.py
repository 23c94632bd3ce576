"""Runs an application of a backfill in its own process, whose memory is freed when it ends."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from chainlake.days import Days
from chainlake.env.java import java_home
from chainlake.env.own_folders import own_folder
from chainlake.env.processes.child import Killed, run_child
from chainlake.errors import AuditFailed, ChainlakeError, DefinitionError, InfrastructureError, InputError, UsageError
from chainlake.lake.records.runs import note_failure
from chainlake.operations.backfills.applications import Application
from chainlake.paths import CODE, PROJECT, Home
from chainlake.run.results import Computed, Written

_ERRORS: dict[int, type[ChainlakeError]] = {
    kind.exit_code: kind for kind in (AuditFailed, UsageError, DefinitionError, InputError)
}


def command_of(application: Application, run_id: str) -> list[str]:
    """The arguments of ``chainlake`` that run an application."""
    option = {"detect": "--pattern", "monitor": "--model"}[application.step]
    names = [word for name in application.definitions for word in (option, name)]
    words = [application.step, application.source, str(application.days.start), str(application.days.end)]
    return [*words, *options_of(application), "--run-id", run_id, *names]


def _asked(application: Application) -> dict[str, Days | None]:
    """The definitions of an application with its days, as ``ops.runs`` names them."""
    return {part.definition: application.days for part in application.parts}


def options_of(application: Application) -> list[str]:
    """The options of its step: they confine it to its days, since other applications may be at work on other days."""
    return ["--repair-horizon", "0", *(["--only-stale"] if application.only_stale else [])]


def in_a_process(say: Callable[[str], None]) -> Callable[[Home, Application, str], Computed]:
    """A launch for ``chainlake.operations.backfills.backfill`` that runs every application as a child process, whose
    output goes to ``say``, indented."""

    def launch(home: Home, application: Application, run_id: str) -> Computed:
        began = datetime.now(UTC)
        with tempfile.TemporaryDirectory(prefix="result-", dir=own_folder(home.temporary)) as folder:
            file = Path(folder) / "result.json"
            command = [sys.executable, "-m", "chainlake", *command_of(application, run_id), "--result", str(file)]
            code = run_child(
                command, env=_environment(), cwd=PROJECT, on_line=lambda line: say(f"    {line}"), watch_parent=False
            )
            result: Written | None = json.loads(file.read_text()) if file.exists() else None
        if code == 0 and result is not None:
            return result
        if code < 0:
            error = Killed.of(-code)
            # Whoever is killed notes nothing, so that without this its attempt would be nowhere in ops.
            note_failure(home, run_id, _asked(application), source=application.source, step=application.step,
                         error=error, started=began)  # fmt: skip
            raise error
        reason = str((result and result.get("error")) or "its last lines say why")
        raise _ERRORS.get(code, InfrastructureError)(reason)

    return launch


def _environment() -> dict[str, str]:
    return os.environ | {
        "JAVA_HOME": str(java_home()),
        "PYTHONPATH": str(CODE),
        "PYTHONUNBUFFERED": "1",
    }
