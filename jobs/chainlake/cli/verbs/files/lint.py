"""``chainlake lint``: checks definitions, runs their tests, and formats patterns."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainlake.cli.errors import BadTarget, NoFile
from chainlake.cli.named import FOLDERS, definition_file, definition_files
from chainlake.definitions.errors import SourceBroken, UnknownSource
from chainlake.errors import ChainlakeError, DefinitionError, UsageError
from chainlake.paths import Home
from chainlake.terminal import json_visible
from chainlake.words import counted

if TYPE_CHECKING:
    from chainlake.cep.lint.report import Schema

HELP = (
    "Check definitions of all kinds before they go live. lint reports errors with their places, and warnings about "
    "what is legal but probably not intended. Without names, it checks all definitions. For a pattern it shows all "
    "errors, and checks attributes against the source that the front matter names. --fix also writes the standard "
    "layout and keeps comments, front matter and meaning. --test runs the tests in the front matter. A source is "
    "tested on its landed files, or on those that --on names: whether a format fits them, which rows would go to "
    "quarantine, which attributes have no value. Keys that a pattern or a model names are looked up in the events "
    "of those files, or of the lake. Exits with 3 if there are errors, with 2 if the only errors are missing files, "
    "with 1 if a test fails, or if there are warnings and --strict is set; otherwise with 0."
)
EXAMPLE = (
    "  chainlake lint\n"
    "  chainlake lint shakeout i5n_speed_profile --test\n"
    "  chainlake lint --fix dags/config/patterns/NAME.sase\n"
    "  chainlake lint stock --on data/stock/us_equity_minute_trade_20131007.csv.gz --json"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the definitions, and what to do with them."""
    parser.add_argument(
        "files", metavar="FILE|NAME", nargs="*", help="patterns, sources and models (default: all of them)"
    )
    parser.add_argument(
        "--on", metavar="FILE", action="append", type=Path, default=[], help="a file as it will land; may be repeated"
    )
    parser.add_argument(
        "--fix", action="store_true", help="write the standard layout into pattern files without errors"
    )
    parser.add_argument("--test", action="store_true", help="run the tests of patterns without errors")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if there are warnings")
    parser.add_argument("--json", action="store_true", help="print one JSON object: findings with their places")


@dataclass
class _Found:
    """What was found in one file, or in all files."""

    errors: list[ChainlakeError] = field(default_factory=list)
    warnings: list[ChainlakeError] = field(default_factory=list)
    fixed: int = 0
    tests: int = 0
    landed: int = 0


@dataclass
class _Waiting:
    """Names of definitions that wait for a source that is broken, by source; its error is listed once."""

    names: dict[str, list[str]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def without(self, name: str, errors: Sequence[ChainlakeError]) -> list[ChainlakeError]:
        """The errors of a definition, with each error of its source only where it is new."""
        found: list[ChainlakeError] = []
        for error in errors:
            wrong = error
            if isinstance(error, SourceBroken):
                self.names.setdefault(error.name, []).append(name)
                wrong = error.why
            if wrong is error or str(wrong) not in self.seen:
                found.append(wrong)
            self.seen.add(str(wrong))
        return found


class UnknownKind(UsageError):
    """A file to check is not a definition of any kind."""

    @classmethod
    def of(cls, file: Path) -> UnknownKind:
        """For a file."""
        return cls("a definition's file ends in .sase (a pattern) or .yaml (a source or a model)", file=file)


def run(args: argparse.Namespace) -> int:
    """Print all findings and their number."""
    from chainlake.cep.plain_files.read import regular_file

    home = Home.from_env()
    look = _Look(home, args)
    for file in args.on:
        regular_file(file)
    every = [str(file) for kind in FOLDERS for file in definition_files(home, kind)]
    given = args.files or every
    listed: list[dict[str, Any]] = []
    whole, waiting = _Found(), _Waiting()
    for name in given:
        try:
            found = look.through(_from_here(definition_file(home, name, *FOLDERS)))
        except ChainlakeError as error:
            # A file that cannot be read must not hide the findings of the others.
            found = _Found([error])
        found.errors = waiting.without(Path(name).stem, found.errors)
        for level, those in (("error", found.errors), ("warning", found.warnings)):
            listed += [_as_json(level, one) for one in those]
            if not args.json:
                _print(level, those)
        whole.errors += found.errors
        whole.warnings += found.warnings
        whole.fixed += found.fixed
        whole.tests += found.tests
        whole.landed += found.landed
    if not args.json:
        for source, names in waiting.names.items():
            print(f"waiting for source/{source}, which is broken: {', '.join(names)}")
    if args.json:
        numbers = {
            "files": len(given),
            "landed_files": whole.landed,
            "errors": len(whole.errors),
            "warnings": len(whole.warnings),
        }
        more = {"waiting": waiting.names} if waiting.names else {}
        output = {"findings": listed, **numbers, "tests": whole.tests, **more}
        print(json_visible(json.dumps(output, ensure_ascii=False)))
    else:
        print(_summary(args, len(given), whole))
    if any(isinstance(one, DefinitionError) for one in whole.errors):
        return DefinitionError.exit_code
    return max((one.exit_code for one in whole.errors), default=int(args.strict and bool(whole.warnings)))


def _from_here(file: Path) -> Path:
    """The file as one would write it in this folder, if it is below it: its path begins every line about it."""
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file


def _print(level: str, those: Sequence[ChainlakeError]) -> None:
    for one in those:
        print(f"{level}: {one}", flush=True)


def _as_json(level: str, one: ChainlakeError) -> dict[str, Any]:
    return {"level": level, "what": one.what, **{k: v for k, v in one.details().items() if k != "excerpt"}}


def _summary(args: argparse.Namespace, definitions: int, whole: _Found) -> str:
    tests = f", {counted(whole.tests, 'test')} run" if args.test else ""
    ending = f", {counted(whole.fixed, 'file')} formatted" if args.fix else ""
    numbers = f"{counted(len(whole.errors), 'error')}, {counted(len(whole.warnings), 'warning')}"
    with_files = f" and {counted(whole.landed, 'landed file')}" if whole.landed else ""
    return f"{counted(definitions, 'definition')}{with_files}: {numbers}{tests}{ending}"


class _Look:
    """Checks definitions; each source's schema and events are read only once.

    Args:
        home: the installation.
        args: arguments of the command.
    """

    def __init__(self, home: Home, args: argparse.Namespace) -> None:
        self.home = home
        self.args = args
        self.known: dict[str, Schema | DefinitionError] = {}

    def through(self, file: Path) -> _Found:
        """The findings in one file."""
        if not os.path.isfile(file):
            raise NoFile.of(file)
        if file.suffix in (".yaml", ".yml"):
            return self.yaml(file)
        if file.suffix != ".sase":
            raise UnknownKind.of(file)
        return self.pattern(file)

    def pattern(self, file: Path) -> _Found:
        """The errors and warnings of a pattern, and the failures of its tests if it has no errors."""
        from chainlake.catalog.functions import codes_of
        from chainlake.catalog.patterns import check_pattern
        from chainlake.cep.lint.report import lint
        from chainlake.definitions.files import check_name, read_definition

        text = read_definition(file)
        changed = _fixed(text) if self.args.fix else None
        written = changed is not None and changed != text
        if changed is not None and written:
            _write(file, changed)
            text = changed
        report = lint(text, name=file.stem, file=str(file), schema=self.schema)
        found = _Found(list(report.errors), list(report.warnings), int(written))
        for check in (partial(codes_of, self.home, text, str(file)), partial(check_name, file, "pattern")):
            try:
                check()
            except DefinitionError as error:
                if str(error) not in map(str, found.errors):
                    found.errors.insert(0, error)
        if not found.errors:
            try:
                check_pattern(self.home, file, text)
            except DefinitionError as error:
                found.errors.append(error)
        if self.args.test and not found.errors:
            self.tests(text, file, found)
        return found

    def tests(self, text: str, file: Path, found: _Found) -> None:
        """Run the tests of a pattern, and add their failures to ``found``."""
        from chainlake.cep.examples import failures
        from chainlake.cep.language.front_matter import read_front_matter
        from chainlake.cep.language.source_text import SourceText
        from chainlake.definitions.source import find_source

        given = SourceText(text, str(file))
        front, _ = read_front_matter(given)
        source = None if front.source is None else find_source(self.home, front.source)
        found.tests, wrong = failures(given, file.stem, source)
        found.errors += wrong

    def yaml(self, file: Path) -> _Found:
        """The findings in the file of a source or a model."""
        from chainlake.catalog.model_lint import lint_model
        from chainlake.definitions.files import yaml_kind
        from chainlake.definitions.source import load_sources
        from chainlake.ingest.source_lint import lint_source

        if yaml_kind(file) == "source":
            source = lint_source(self.home, file, self.args.on)
            return _Found(list(source.errors), list(source.warnings), landed=source.files)
        model = lint_model(file, load_sources(self.home), lambda source: self.schema(source.name).observed)
        return _Found(list(model.errors), list(model.warnings))

    def schema(self, name: str) -> Schema:
        """The schema of a source, with the keys and types that occur in the files of ``--on`` or in the lake."""
        from chainlake.catalog.observed import observed_in_lake
        from chainlake.cep.lint.report import Schema
        from chainlake.definitions.source import find_source
        from chainlake.ingest.source_lint import observed_in_files

        if name not in self.known:
            try:
                source = find_source(self.home, name)
                on = self.args.on
                observed = observed_in_files(source, on) if on else observed_in_lake(self.home, name)
                self.known[name] = Schema(source.pattern_columns(), source.types, source.derived, source.key, observed)
            except UnknownSource as error:
                self.known[name] = error
            except DefinitionError as error:
                self.known[name] = SourceBroken.of(name, error, self.home.config, None)
        found = self.known[name]
        if isinstance(found, DefinitionError):
            raise found
        return found


def _fixed(text: str) -> str | None:
    """The text in the standard layout, or None if it has errors; the source is not consulted."""
    from chainlake.cep.lint.report import laid_out

    try:
        return laid_out(text)
    except DefinitionError:
        return None


def _write(file: Path, text: str) -> None:
    """Replace the file atomically, since a half-written file would be a broken pattern to a run that starts now."""
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_bytes(text.encode("utf-8"))
        part.chmod(file.stat().st_mode & 0o777)
        os.replace(part, file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise BadTarget.refused("the file", file, error) from None
