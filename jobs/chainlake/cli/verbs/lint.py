"""``python -m jobs lint``: look definitions through, and lay patterns out."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from chainlake.cli.event_files import not_utf8
from chainlake.errors import DefinitionError, UsageError
from chainlake.paths import Home
from chainlake.words import counted

if TYPE_CHECKING:
    from chainlake.cep.lint.report import Report, Schema
    from chainlake.ingest.source_lint import SourceReport

HELP = (
    "Look definitions through: errors with their places, and warnings about what is legal but hardly meant. "
    "Of a pattern all errors are shown, and attributes are checked against the source that the front matter names; "
    "--fix also writes the house's layout: comments and front matter stay, and the meaning does. "
    "A source is held against its landed files, or against those that --on names: whether a format fits them, which "
    "rows would go to quarantine, which attributes have no value. "
    "Exits with 3 if there are errors; warnings do not fail."
)
EXAMPLE = (
    "  python -m jobs lint dags/config/patterns/*.sase\n"
    "  python -m jobs lint --fix dags/config/patterns/NAME.sase\n"
    "  python -m jobs lint dags/config/sources/stock.yaml --on data/stock/us_equity_minute_trade_20131007.csv.gz"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files, and whether to lay them out."""
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="patterns, sources and models")
    parser.add_argument(
        "--on", metavar="FILE", action="append", type=Path, default=[], help="a file as it will land; may be repeated"
    )
    parser.add_argument("--fix", action="store_true", help="write the layout into pattern files without errors")


def run(args: argparse.Namespace) -> int:
    """Print all findings and their number."""
    from chainlake.cep.lint.report import lint
    from chainlake.cep.plain_files.read import regular_file

    home = Home.from_env()
    known: dict[str, Schema | DefinitionError] = {}
    errors = warnings = fixed = 0
    for file in args.on:
        regular_file(file)
    for file in args.files:
        if file.suffix in (".yaml", ".yml"):
            report = _of_yaml(home, file, args.on)
        else:
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


def _of_yaml(home: Home, file: Path, on: list[Path]) -> Report | SourceReport:
    """A source, or a model: that names its source."""
    from chainlake.catalog.models import load_one
    from chainlake.cep.lint.report import Report
    from chainlake.definitions.files import source_named
    from chainlake.definitions.source import load_sources
    from chainlake.ingest.source_lint import lint_source

    if not file.exists():
        raise UsageError("there is no such file", file=file)
    if source_named(file) is None:
        return lint_source(home, file, on)
    try:
        warnings = load_one(file, load_sources(home)).config.warnings
    except DefinitionError as error:
        return Report((error,), (), None)
    return Report((), tuple(DefinitionError(one, file=file) for one in warnings), None)


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"the file cannot be read: {error.strerror}", file=file) from None
    except UnicodeDecodeError as error:
        raise not_utf8(file, error) from None


def _fixed(text: str) -> str | None:
    """The text in the house's layout, or None if it has errors (without a look at the source)."""
    from chainlake.cep.lint.report import laid_out

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
    from chainlake.cep.lint.report import Schema
    from chainlake.definitions.source import find_source

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
