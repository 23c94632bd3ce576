"""A TextMate grammar of pattern files, with which editors colour them; its keywords come from the language."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainlake.cep.language import ast, functions
from chainlake.cep.language.parsing.lexer import ELSEWHERE, KEYWORDS, soft

#: Names of the files beside the manifest of VS Code.
GRAMMAR_FILE, LANGUAGE_FILE = "sase.tmLanguage.json", "language-configuration.json"


def grammar() -> dict[str, Any]:
    """The grammar: YAML between the two ``---`` lines, and the query."""
    return {
        "name": "Chainlake pattern",
        "scopeName": "source.sase",
        "fileTypes": ["sase"],
        "patterns": [{"include": "#front"}, {"include": "#query"}],
        "repository": {
            "front": {
                "begin": r"\A(---)\s*$",
                "end": r"^(---)\s*$",
                "captures": {"1": {"name": "punctuation.definition.frontmatter.sase"}},
                "contentName": "meta.embedded.block.frontmatter",
                "patterns": [{"include": "source.yaml"}],
            },
            "query": {
                "patterns": [
                    {"name": "comment.line.number-sign.sase", "match": "#.*$"},
                    {"name": "string.quoted.single.sase", "match": r"'(?:[^'\n]|'')*'"},
                    {"name": "variable.other.quoted.sase", "match": r'"(?:[^"\n]|"")*"'},
                    {"name": "constant.language.boolean.sase", "match": r"(?i)\b(?:TRUE|FALSE)\b"},
                    {
                        "name": "keyword.control.sase",
                        "match": _words([*KEYWORDS, *soft(), *ELSEWHERE, *ast.AGGREGATES]),
                    },
                    {"name": "support.function.sase", "match": rf"{_words(functions.known())}(?=\s*\()"},
                    {"name": "constant.numeric.sase", "match": r"(?:\b\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?\b"},
                    {"name": "keyword.operator.sase", "match": r"<=|>=|==|!=|<>|\.\.|[-+*/<>=∈?]"},
                ]
            },
        },
    }


def extension() -> dict[str, Any]:
    """The manifest (``package.json``) with which VS Code takes the folder as an extension that colours patterns."""
    known = grammar()
    endings = [f".{ending}" for ending in known["fileTypes"]]
    coloured = {
        "language": "sase",
        "scopeName": known["scopeName"],
        "path": f"./{GRAMMAR_FILE}",
        "embeddedLanguages": {known["repository"]["front"]["contentName"]: "yaml"},
    }
    return {
        "name": "sase",
        "displayName": known["name"],
        "description": "Colours the pattern files of Chainlake.",
        "version": "1.0.0",
        "publisher": "chainlake",
        "engines": {"vscode": "^1.60.0"},
        "categories": ["Programming Languages"],
        "contributes": {
            "languages": [
                {
                    "id": "sase",
                    "aliases": [known["name"]],
                    "extensions": endings,
                    "configuration": f"./{LANGUAGE_FILE}",
                }
            ],
            "grammars": [coloured],
        },
    }


def language() -> dict[str, Any]:
    """What VS Code knows of patterns besides colours: how a comment begins, and which characters come in pairs."""
    pairs = [["(", ")"], ["[", "]"], ["{", "}"]]
    return {"comments": {"lineComment": "#"}, "brackets": pairs, "autoClosingPairs": [*pairs, ["'", "'"]]}


def _words(words: Iterable[str]) -> str:
    """A regular expression for one of some words, in any case; longer words come first, since some begin alike."""
    return rf"(?i)\b(?:{'|'.join(sorted(set(words), key=lambda word: (-len(word), word)))})\b"
