"""``python -m jobs lint``: look definitions through, and lay patterns out."""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from chainlake.cli.errors import BadTarget, Doubtful, NoFile
from chainlake.errors import ChainlakeError, DefinitionError
from chainlake.paths import Home
from chainlake.words import counted

if TYPE_CHECKING:
    from chainlake.cep.lint.report import Report, Schema
    from chainlake.ingest.source_lint import SourceReport

HELP = (
    "Check definitions: errors with their places, and warnings about what is legal but probably not intended. "
    "Of a pattern all errors are shown, and attributes are checked against the source that the front matter names; "
    "--fix also writes the standard layout: comments, front matter and meaning stay. "
    "A source is tested on its landed files, or on those that --on names: whether a format fits them, which "
    "rows would go to quarantine, which attributes have no value. Keys that a pattern names are looked up in the "
    "events of those files, or of the lake. "
    "Exits with 3 if there are errors, with 2 if the only errors are missing files; warnings do not fail."
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
    parser.add_argument(
        "--fix", action="store_true", help="write the standard layout into pattern files without errors"
    )


def run(args: argparse.Namespace) -> int:
    """Print all findings and their number."""
    from chainlake.cep.plain_files.read import regular_file

    home = Home.from_env()
    known: dict[str, Schema | DefinitionError] = {}
    errors: list[ChainlakeError] = []
    warnings = fixed = 0
    for file in args.on:
        regular_file(file)
    for file in args.files:
        found: list[ChainlakeError]
        try:
            report, changed = _looked_through(home, file, args, known)
            found, also = list(report.errors), list(report.warnings)
        except ChainlakeError as error:
            # A file that cannot be read hides nothing of the others.
            found, also, changed = [error], [], False
        for kind, those in (("error", found), ("warning", also)):
            for one in those:
                print(f"{kind}: {one}", flush=True)
        errors += found
        warnings += len(also)
        fixed += changed
    ending = f", {counted(fixed, 'file')} formatted" if args.fix else ""
    numbers = f"{counted(len(errors), 'error')}, {counted(warnings, 'warning')}"
    print(f"{counted(len(args.files), 'file')}: {numbers}{ending}")
    if any(isinstance(one, DefinitionError) for one in errors):
        return DefinitionError.exit_code
    return max((one.exit_code for one in errors), default=0)


def _looked_through(
    home: Home, file: Path, args: argparse.Namespace, known: dict[str, Schema | DefinitionError]
) -> tuple[Report | SourceReport, bool]:
    """What was found in one file, and whether its layout was written."""
    from chainlake.catalog.functions import codes_of
    from chainlake.cep.lint.report import Report, lint
    from chainlake.definitions.files import check_name, read_definition

    if not os.path.isfile(file):
        raise NoFile.of(file)
    if file.suffix in (".yaml", ".yml"):
        return _of_yaml(home, file, args.on), False
    text = read_definition(file)
    changed = _fixed(text) if args.fix else None
    written = changed is not None and changed != text
    if changed is not None and written:
        _write(file, changed)
        text = changed
    report = lint(text, name=file.stem, file=str(file), schema=lambda name: _schema(home, name, args.on, known))
    for check in (partial(codes_of, home, text, str(file)), partial(check_name, file, "pattern")):
        try:
            check()
        except DefinitionError as error:
            if str(error) not in map(str, report.errors):
                report = Report((error, *report.errors), report.warnings, None)
    return report, written


def _of_yaml(home: Home, file: Path, on: list[Path]) -> Report | SourceReport:
    """A source, or a model: that names its source."""
    from chainlake.catalog.models import load_one
    from chainlake.cep.lint.report import Report
    from chainlake.definitions.files import source_named
    from chainlake.definitions.source import load_sources
    from chainlake.ingest.source_lint import lint_source

    if source_named(file) is None:
        return lint_source(home, file, on)
    try:
        warnings = load_one(file, load_sources(home)).config.warnings
    except DefinitionError as error:
        return Report((error,), (), None)
    return Report((), tuple(Doubtful.of(one, file) for one in warnings), None)


def _fixed(text: str) -> str | None:
    """The text in the standard layout, or None if it has errors (without a look at the source)."""
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
        raise BadTarget.refused("the file", file, error) from None


def _schema(home: Home, name: str, on: list[Path], known: dict[str, Schema | DefinitionError]) -> Schema:
    """The schema of a source, with the keys and types of the files of ``--on`` or of the lake; each is read once."""
    from chainlake.catalog.heard import heard_in_lake
    from chainlake.cep.lint.report import Schema
    from chainlake.definitions.source import find_source
    from chainlake.ingest.source_lint import heard_in_files

    if name not in known:
        try:
            source = find_source(home, name)
            heard = heard_in_files(source, on) if on else heard_in_lake(home, name)
            known[name] = Schema(source.pattern_columns(), source.types, source.derived, source.key, heard)
        except DefinitionError as error:
            known[name] = error
    found = known[name]
    if isinstance(found, DefinitionError):
        raise found
    return found
