"""Users read plain English: no message, help text or comment of a column holds what makes a native stop."""

from __future__ import annotations

import ast
import re
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


def found(text: str) -> list[int]:
    """Lines with a string that holds one of the phrases."""
    return [line for line, one in shown(text) if ANY.search(one)] if ANY.search(text) else []


@pytest.mark.parametrize("phrase", PHRASES)
def test_each_phrase_is_found_where_it_is_written(phrase: str) -> None:
    sentence, _ = PHRASES[phrase]
    assert re.search(phrase, sentence, re.IGNORECASE)
    assert found(f"raise X({sentence!r})") == found(f"raise X(f'{{name}}: ' f{sentence!r})") == [1]
    assert found(f'"""{sentence}"""') == found(f"x = 1  # {sentence}") == []


@pytest.mark.slow
def test_users_read_none_of_them() -> None:
    files = [file for room in ("jobs", "schemas", "dags") for file in sorted((ROOT / room).rglob("*.py"))]
    assert len(files) > 700
    assert [f"{file.relative_to(ROOT)}:{line}" for file in files for line in found(file.read_text("utf-8"))] == []
