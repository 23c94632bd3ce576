"""An error is a class of its own that composes what it says; the classes they are grouped under carry an exit code."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import chainlake
from chainlake import errors

ROOT = Path(chainlake.__file__).parent
GROUPS = {name for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, errors.ChainlakeError)}
CALLED = re.compile(rf"\b(?:{'|'.join(sorted(GROUPS))})\(")

#: Readers that put whatever is wrong at its line and column: what they are told comes from the checks of each key, and
#: of each part of a pattern.
PLACED = {"definitions/yaml_lines.py", "ingest/source_lint.py", "cep/language/source_text.py"}


def composed(text: str) -> Iterator[int]:
    """Lines on which an error of a group is made as it is, not of a class of its own."""
    if not CALLED.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        name = node.func if isinstance(node, ast.Call) else None
        called = name.id if isinstance(name, ast.Name) else name.attr if isinstance(name, ast.Attribute) else ""
        if called in GROUPS:
            yield node.lineno


def test_every_error_has_a_class_of_its_own() -> None:
    found = []
    for file in sorted(ROOT.rglob("*.py")):
        name = file.relative_to(ROOT).as_posix()
        if name not in PLACED:
            found += [f"{name}:{line}" for line in composed(file.read_text())]
    assert not found, "make a class for each, as in the errors.py of its room"


def test_an_error_of_a_group_is_noticed() -> None:
    """However it is called, raised or returned."""
    text = "raise UsageError('x')\ne = errors.InputError(f'{x}')\nraise InputErrorOf.of(x)\nraise NoFile.of(x)\n"
    assert list(composed(text)) == [1, 2]
