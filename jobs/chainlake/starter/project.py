"""Writes a new project into a folder: definitions, a sample, a CI workflow, and a README that says how to work."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from importlib import resources
from pathlib import Path

from chainlake.definitions.files import WORD
from chainlake.errors import UsageError
from chainlake.starter.editors.files import editor_files
from chainlake.starter.file_names import source_name
from chainlake.starter.guess import Guess, guess
from chainlake.starter.guessed import model_of, pattern_of, source_of
from chainlake.starter.sample import FIRST, sample


class NoPlace(UsageError):
    """A project cannot be made where it was asked for."""

    @classmethod
    def taken(cls, folder: Path, first: str) -> NoPlace:
        """The folder is not empty."""
        return cls(f"this folder is not empty: it contains {first}", file=folder, hint="Name a new folder.")

    @classmethod
    def no_folder(cls, folder: Path) -> NoPlace:
        """The path is a file."""
        return cls("this is not a folder", file=folder, hint="Name a new folder.")

    @classmethod
    def refused(cls, folder: Path, error: OSError) -> NoPlace:
        """The operating system refuses the write."""
        return cls(f"the project cannot be written: {error.strerror or error}", file=error.filename or folder)


class NoName(UsageError):
    """A source cannot have the name that was asked for."""

    @classmethod
    def of(cls, name: str) -> NoName:
        """It is no name of tables."""
        hint = "A name begins with a letter, and has letters, digits and underscores only."
        return cls(f"a source cannot be called '{name}'", key="--name", hint=hint)


@dataclass(frozen=True)
class Made:
    """A project that was made.

    Args:
        source, pattern: names of its definitions.
        model: name of its model, if it has one.
        data: path of its sample in its folder.
        days: first UTC day of the sample's first rows, and the day after their last one.
        guess: the guess, if the source was made from a file.
    """

    source: str
    pattern: str
    model: str | None
    data: str
    days: tuple[date, date]
    guess: Guess | None


def new_project(folder: Path, program: Path, given: Path | None = None, name: str | None = None) -> Made:
    """Make a project.

    Args:
        folder: the folder, which is made if it does not exist, and must be empty.
        program: ``chainlake``, by which the project's commands are run where none is on the PATH.
        given: a CSV file from which the source is guessed; without it, a sample is made up.
        name: of the source that is guessed; without it, the file's name without what varies.

    Raises:
        UsageError: the folder is not empty, or cannot be written to; or the name cannot be one of a source.
        InputError: nothing can be guessed from the file.
    """
    if folder.exists() and not folder.is_dir():
        raise NoPlace.no_folder(folder)
    if folder.is_dir() and (others := sorted(path.name for path in folder.iterdir())):
        raise NoPlace.taken(folder, others[0])
    if name is not None and not WORD.fullmatch(name):
        raise NoName.of(name)
    made, files = _sample() if given is None else _guessed(given, name or source_name(given.name))
    texts = files | _shared(folder.resolve().name, made, program)
    try:
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if given is not None:
            (folder / made.data).parent.mkdir(exist_ok=True)
            shutil.copyfile(given, folder / made.data)
    except OSError as error:
        raise NoPlace.refused(folder, error) from None
    return made


def _sample() -> tuple[Made, dict[str, str]]:
    data = f"data/rooms_{FIRST:%Y%m%d}.csv"
    # In summer, midnight in Berlin is 22:00 of the UTC day before.
    day = (FIRST - timedelta(days=1)).date()
    made = Made("rooms", "door_left_open", "cooling_cost", data, (day, day + timedelta(days=2)), None)
    return made, {
        "config/sources/rooms.yaml": _template("rooms.yaml"),
        "config/patterns/door_left_open.sase": _template("door_left_open.sase"),
        "config/models/cooling_cost.yaml": _template("cooling_cost.yaml"),
        data: sample(),
    }


def _guessed(given: Path, source: str) -> tuple[Made, dict[str, str]]:
    found = guess(given)
    pattern = "first_pattern"
    first, last = found.days
    one = timedelta(days=1)
    # Without offsets, a local day may begin on the UTC day before, or end on the one after.
    days = (first, last + one) if found.zoned or found.form.startswith("epoch") else (first - one, last + 2 * one)
    text = model_of(found, source, days[0])
    model = None if text is None else "first_model"
    made = Made(source, pattern, model, f"data/{given.name}", days, found)
    files = {
        f"config/sources/{source}.yaml": source_of(found, source),
        f"config/patterns/{pattern}.sase": pattern_of(found, source),
    }
    return made, files if text is None else files | {f"config/models/{model}.yaml": text}


def _shared(name: str, made: Made, program: Path) -> dict[str, str]:
    """The files that every project has."""
    lint = f"chainlake lint --test --on {made.data}"
    commands = [lint, f"chainlake match {made.pattern} {made.data} --source {made.source} --format table"]
    contents = [
        ("config/sources/", "which files land, and what an event in them is"),
        ("config/patterns/", "which events together are a match, with tests"),
        ("data/", "a sample"),
        (".github/workflows/", "what is checked before an edit goes live"),
        ("editors/", "JSON schemas, and an extension of VS Code that colours patterns; `chainlake schema` prints them"),
    ]
    if made.model is not None:
        commands.append(f"chainlake try {made.model} {made.data}")
        contents.insert(2, ("config/models/", "a linear relation whose changes are reported"))
    page = {
        "NAME": name,
        "CONTENTS": "\n".join(f"| `{path}` | {text} |" for path, text in contents),
        "COMMANDS": "\n".join(commands),
        "SOURCE": made.source,
        "PATTERN": made.pattern,
        "FROM TO": "{} {}".format(*made.days),
        "DAILY\n": "" if made.model is None else "chainlake monitor {} {} {}\n".format(made.source, *made.days),
    }
    return {
        "README.md": _filled(_template("README.md"), page),
        "env.sh": _filled(_template("env.sh"), {"PROGRAM_FOLDER": shlex.quote(str(program.parent))}),
        ".gitignore": _template("gitignore"),
        **editor_files(),
        ".github/workflows/check.yml": _filled(_template("check.yml"), {"data/SAMPLE": made.data}),
    }


def _template(name: str) -> str:
    return (resources.files("chainlake.starter") / "project" / name).read_text(encoding="utf-8")


def _filled(text: str, words: Mapping[str, str]) -> str:
    return re.sub("|".join(map(re.escape, words)), lambda found: words[found[0]], text)
