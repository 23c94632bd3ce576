"""``python -m jobs lint``: look pattern files through, and lay them out."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.cli.event_files import not_utf8
from jobs.errors import DefinitionError, UsageError
from jobs.paths import Home
from jobs.words import counted

if TYPE_CHECKING:
    from jobs.cep.lint import Schema

HELP = (
    "Look pattern files through: all errors with their places, and warnings about what is legal but hardly meant. "
    "Attributes are checked against the source that the front matter names. --fix also writes the house's layout; "
    "comments and front matter stay, and the meaning does. Exits with 3 if there are errors; warnings do not fail."
)
EXAMPLE = (
    "  python -m jobs lint dags/config/patterns/*.sase\n"
    "  python -m jobs lint --fix dags/config/patterns/NAME.sase"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files, and whether to lay them out."""
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="pattern files")
    parser.add_argument("--fix", action="store_true", help="write the layout into files without errors")


def run(args: argparse.Namespace) -> int:
    """Print all findings and their number."""
    from jobs.cep.lint import lint

    home = Home.from_env()
    known: dict[str, Schema | DefinitionError] = {}
    errors = warnings = fixed = 0
    for file in args.files:
        text = _read(file)
        if args.fix:
            changed = _fixed(text)
            if changed is not None and changed != text:
                _write(file, changed)
                fixed += 1
                text = changed
        report = lint(text, name=file.stem, file=str(file), schema=lambda name: _schema(home, name, known))
        for kind, found in (("error", report.errors), ("warning", report.warnings)):
            for one in found:
                print(f"{kind}: {one}", flush=True)
        errors += len(report.errors)
        warnings += len(report.warnings)
    ending = f", {counted(fixed, 'file')} laid out" if args.fix else ""
    print(f"{counted(len(args.files), 'file')}: {counted(errors, 'error')}, {counted(warnings, 'warning')}{ending}")
    return DefinitionError.exit_code if errors else 0


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"the file cannot be read: {error.strerror}", file=file) from None
    except UnicodeDecodeError as error:
        raise not_utf8(file, error) from None


def _fixed(text: str) -> str | None:
    """The text in the house's layout, or None if it has errors (without a look at the source)."""
    from jobs.cep.lint import laid_out

    try:
        return laid_out(text)
    except DefinitionError:
        return None


def _write(file: Path, text: str) -> None:
    """All at once: a file half written would be a broken pattern to a run that starts now."""
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_bytes(text.encode("utf-8"))
        part.chmod(file.stat().st_mode & 0o777)
        os.replace(part, file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UsageError(f"the file cannot be written: {error.strerror}", file=file) from None


def _schema(home: Home, name: str, known: dict[str, Schema | DefinitionError]) -> Schema:
    """The schema of a source; each source file is read once."""
    from jobs.cep.lint import Schema
    from jobs.sources import find_source

    if name not in known:
        try:
            source = find_source(home, name)
            known[name] = Schema(source.pattern_columns(), source.types, source.derived)
        except DefinitionError as error:
            known[name] = error
    found = known[name]
    if isinstance(found, DefinitionError):
        raise found
    return found
