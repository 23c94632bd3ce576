"""Users and developers read plain English: no message, comment, docstring or name holds what makes a native stop."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import chainlake

ROOT = Path(chainlake.__file__).parents[2]
#: What is not written, with a sentence that holds it, and what is written instead.
PHRASES = {
    r"(?<!there )\bis no (?!longer\b|shorter\b)\w": ("'x' is no duration", "is not a duration"),
    r"\bmeans nothing\b": ("'x' means nothing for a csv", "has no meaning for"),
    r"\b(?:a text|texts)\b": ("x must be a list of texts", "string, or text"),
    r"\b(?:matter|declaration of \w+|test|alerts) ha(?:s|ve) no key\b": ("alerts have no key mut", "unknown key"),
    r"\bstands? (?:twice|before|after|beside)\b": ("the key x stands twice", "duplicate; comes before; write beside"),
    r"\b(?:hangs on|mend)\b": ("Mend the file first.", "depends on; fix"),
    r"\b(?:cannot|will|to) go on\b": ("rise cannot go on to 2025-03-04", "continue"),
    r"\b(?:is|are) (?:noted|told)\b": ("nothing is noted of source lab", "record; send; report"),
    r"\bnot to be had\b|\bwithout a word\b|\bin its turn\b": ("the lock was not to be had", "could not be acquired"),
    r"\bin the order of time\b|\bin line \d": ("a run in the order of time", "in time order; on line"),
    r"\b(?:a|each) blank\b(?! (?:cell|line|constant|value|or)\b)": ("Write a blank after the colon.", "space"),
}  # fmt: skip
ANY = re.compile("|".join(PHRASES), re.IGNORECASE)
#: The same for comments and docstrings.
PROSE = {
    r"\bin the order of time\b": ("rows in the order of time", "in time order"),
    r"\b(?:made|written|listed) anew\b": ("the page is made anew", "made again; rewritten"),
    r"\b(?:go|goes|going|went) on (?:with|from)\b": ("the run goes on with the next", "continue"),
    r"\b(?:at most|at least|up to|after) so (?:many|much)\b": ("at most so many rows", "this many; a number of"),
    r"\b(?:or|and) the like\b": ("a pipe or the like", "or similar; and others"),
    r"\bhand(?:s|ed|ing)? (?:on|over|back)\b": ("rows are handed back", "pass on; pass; return"),
    r"\bheld against\b": ("a source held against files", "compared with"),
    r"\bmend(?:s|ed|ing)?\b": ("what mends it", "fix"),
    r"\btold apart\b|\b(?:is|are|was|were|been) noted\b": ("events are told apart", "distinguish; record"),
    r"\ban? \w+ of (?:its|their) own\b": ("in a process of its own", "its own; a separate"),
    r"\bsomebody\b|\b(?:is|are) said of\b": ("what is said of a day", "someone; about"),
}
ANY_PROSE = re.compile("|".join(PROSE), re.IGNORECASE)
#: Words that no module, class, function, argument or variable has in its name.
WORDS = {"told", "noted", "unnoted", "unheard", "mend", "mends"}
ANY_WORD = re.compile("|".join(WORDS), re.IGNORECASE)


def shown(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each string of a module that is not a docstring; what is put into it becomes ``0``."""
    tree = ast.parse(text)
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            inside.update(id(part) for part in node.values)
            yield node.lineno, "".join(str(one.value) if isinstance(one, ast.Constant) else "0" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each comment and docstring of a module; lines of a docstring are joined."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, " ".join(node.value.value.split())


def named(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of all that a module defines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def words_of(name: str) -> set[str]:
    """``lost_rows``, ``LostRows`` and ``LOST_ROWS`` as ``{"lost", "rows"}``."""
    return set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))


def awkward(text: str) -> list[str]:
    """Comments and docstrings with one of the phrases, and names with one of the words; each after its line."""
    wrong = []
    if ANY_PROSE.search(" ".join(text.split())):
        wrong += [f"{line}: {one}" for line, one in prose(text) if ANY_PROSE.search(one)]
    if ANY_WORD.search(text):
        wrong += [f"{line}: {name}" for line, name in named(text) if words_of(name) & WORDS]
    return wrong


def found(text: str) -> list[int]:
    """Lines with a string that holds one of the phrases."""
    return [line for line, one in shown(text) if ANY.search(one)] if ANY.search(text) else []


@pytest.mark.parametrize("phrase", PHRASES)
def test_each_phrase_is_found_where_it_is_written(phrase: str) -> None:
    sentence, _ = PHRASES[phrase]
    assert re.search(phrase, sentence, re.IGNORECASE)
    assert found(f"raise X({sentence!r})") == found(f"raise X(f'{{name}}: ' f{sentence!r})") == [1]
    assert found(f'"""{sentence}"""') == found(f"x = 1  # {sentence}") == []


@pytest.mark.parametrize("phrase", PROSE)
def test_each_phrase_is_found_in_comments_and_docstrings(phrase: str) -> None:
    sentence, _ = PROSE[phrase]
    first, last = sentence.rsplit(" ", 1)
    assert re.search(phrase, sentence, re.IGNORECASE)
    broken = f'"""{first}\n{last}."""'
    for text in (f"x = 1  # {sentence}", f"#: {sentence}", broken, f'class A: """{sentence}."""'):
        assert awkward(text) == [f"1: {one}" for _, one in prose(text)] != []
    assert list(prose(f"x = {sentence!r}")) == []


def test_words_are_found_in_all_names() -> None:
    text = "class MendRows: ...\ndef f(told: int) -> None: ...\ndef _noted_day(): ...\nUNNOTED = told_apart = 1"
    assert sorted(awkward(text)) == ["1: MendRows", "2: told", "3: _noted_day", "4: UNNOTED", "4: told_apart"]
    assert awkward("def amended(folder_told_off: int) -> None: ...") == ["1: folder_told_off"]


def sources() -> list[Path]:
    """The modules of the package, its schemas and its DAGs."""
    files = [file for room in ("jobs", "schemas", "dags") for file in sorted((ROOT / room).rglob("*.py"))]
    assert len(files) > 700
    return files


@pytest.mark.slow
def test_users_read_none_of_them() -> None:
    assert [f"{file.relative_to(ROOT)}:{line}" for file in sources() for line in found(file.read_text("utf-8"))] == []


@pytest.mark.slow
def test_developers_read_none_of_them() -> None:
    names = [str(file.relative_to(ROOT)) for file in sources() if words_of(file.stem) & WORDS]
    lines = [f"{file.relative_to(ROOT)}:{line}" for file in sources() for line in awkward(file.read_text("utf-8"))]
    assert names + lines == []
