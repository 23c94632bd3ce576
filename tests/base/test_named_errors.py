"""An error is a class of its own that composes what it says; the classes they are grouped under carry an exit code."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import chainlake
from chainlake import errors
from chainlake.cep.language.errors.front_matter import FrontMatterError
from chainlake.cep.language.errors.placed import PatternError
from chainlake.cep.search.compiled.text.errors import NotCompilable

ROOT = Path(chainlake.__file__).parent
#: Groups, and what errors of patterns have in common: neither says by itself what is wrong.
GROUPS = {name for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, errors.ChainlakeError)}
GROUPS |= {PatternError.__name__, FrontMatterError.__name__, NotCompilable.__name__}
CALLED = re.compile(rf"\b(?:{'|'.join(sorted(GROUPS))})\(|\.error\(|\b[A-Z]\w+\._[a-z]\w*\(")

#: Hands something to an error.
HANDED = re.compile(r"\b(?:raise|yield|return) (?:[\w.]+\(\s*)?[A-Z]\w*\.\w+\(")

#: The reader that puts whatever is wrong with YAML at its line and column: the checks of each key say what it is.
PLACED = {"definitions/yaml_lines.py"}
#: What tells by an error's text of which kind it is.
BY_TEXT = re.compile(r"\b(?:error|failed|found|e)\.(?:what|hint)(?: [!=]= | not in | in |\.(?:starts|ends)with\()")


def composed(text: str) -> Iterator[int]:
    """Lines on which an error of a group is made as it is, not of a class of its own, or is told what to say."""
    if not CALLED.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        name = node.func if isinstance(node, ast.Call) else None
        called = name.id if isinstance(name, ast.Name) else name.attr if isinstance(name, ast.Attribute) else ""
        of = name.value.id if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name) else ""
        told = called == "error" and owner(name) != "log" or of[:1].isupper() and called.startswith("_")
        if called in GROUPS or told:
            yield node.lineno


def owner(called: ast.expr | None) -> str:
    """The name before the last dot of what is called."""
    whose = called.value if isinstance(called, ast.Attribute) else None
    return whose.id if isinstance(whose, ast.Name) else whose.attr if isinstance(whose, ast.Attribute) else ""


def is_text(given: ast.expr) -> bool:
    """Whether words are put together: a name of several parts, such as that of a table, has no blanks."""
    if isinstance(given, ast.Call):
        return isinstance(given.func, ast.Attribute) and given.func.attr == "format"
    parts = given.values if isinstance(given, ast.JoinedStr) else []
    return any(isinstance(part, ast.Constant) and " " in part.value for part in parts)


def texts(text: str) -> Iterator[int]:
    """Lines on which an error is handed a text that was composed for it."""
    if not HANDED.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Raise | ast.Yield | ast.Return):
            made = node.exc if isinstance(node, ast.Raise) else node.value
            name = made.func if isinstance(made, ast.Call) else None
            if isinstance(name, ast.Attribute) and name.attr == "placed":
                assert isinstance(made, ast.Call)
                made = made.args[0]
                name = made.func if isinstance(made, ast.Call) else None
            if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name) and name.value.id[:1].isupper():
                assert isinstance(made, ast.Call)
                given = [*made.args, *(one.value for one in made.keywords)]
                if any(map(is_text, given)):
                    yield node.lineno


def files() -> Iterator[tuple[str, str]]:
    for file in sorted(ROOT.rglob("*.py")):
        name = file.relative_to(ROOT).as_posix()
        if name not in PLACED:
            yield name, file.read_text()


def test_every_error_has_a_class_of_its_own() -> None:
    found = [f"{name}:{line}" for name, text in files() for line in composed(text)]
    assert not found, "make a class for each, as in the errors.py of its room"


def test_errors_are_handed_facts() -> None:
    found = [f"{name}:{line}" for name, text in files() if "errors" not in name for line in texts(text)]
    assert not found, "hand names, places and kinds over, and compose the text in the class"


def test_no_code_tells_errors_by_their_text() -> None:
    found = [
        f"{name}:{number}"
        for name, text in files()
        for number, line in enumerate(text.splitlines(), 1)
        if BY_TEXT.search(line)
    ]
    assert not found, "make a class for the kind, and ask for it"


def test_an_error_of_a_group_is_noticed() -> None:
    """However it is called, raised or returned."""
    text = "raise UsageError('x')\ne = errors.InputError(f'{x}')\nraise InputErrorOf.of(x)\nraise NoFile.of(x)\n"
    assert list(composed(text)) == [1, 2]
    text = (
        "raise self.source.error('x', at)\nraise UnknownName._at(source, at, 'x')\nraise UnknownName.of(source, at)\n"
        "log.error('%s', x)\nself.log.error('%s', x)\n"
    )
    assert list(composed(text)) == [1, 2]
    text = "raise Wrong.of(at, f'no {x}')\nreturn_ = 1\nraise Wrong.of(at, hint=f'{x} is')\nraise W.of(f'{s}.{x}')\n"
    text += "raise top.placed(W.of(f'no {x}'), 'key')\nraise top.placed(W.of(x), f'a {x}')\nraise W.of(NO.format(x))\n"
    assert list(texts(text)) == [1, 3, 5, 7]
    told = ("if error.what == 'x':", "error.what.startswith(('x',))", "if 'x' in error.whats:")
    assert [bool(BY_TEXT.search(line)) for line in told] == [True, True, False]
