"""The functions that a front matter declares, as the query below it uses them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chainlake.cep.language import ast
from chainlake.cep.language.declared.function import Code, Place
from chainlake.cep.language.errors.names import UnfitFunction
from chainlake.cep.language.front_matter import FrontMatter
from chainlake.cep.language.functions import Function, declared, lookup
from chainlake.cep.language.source_text import SourceText

_WORDS = frozenset({"prev", "case"})


def parted(params: Mapping[str, Any]) -> tuple[dict[str, Code], dict[str, Any]]:
    """A caller's parameters as two mappings: the code of functions, and values, with lists and sets as tuples."""
    codes = {name: value for name, value in params.items() if isinstance(value, Code)}
    others = {name: value for name, value in params.items() if not isinstance(value, Code)}
    return codes, {name: tuple(v) if isinstance(v, list | set | tuple) else v for name, v in others.items()}


def own_functions(
    source: SourceText, pattern: str, front: FrontMatter, codes: Mapping[str, Code]
) -> dict[str, Function]:
    """The functions that a pattern declares, by lower-case name.

    Args:
        source: the pattern's text.
        pattern: its name.
        front: its front matter.
        codes: the code of each by its name as declared; empty if no code was loaded.

    Raises:
        DefinitionError: one has the name of a function of the language, or has no code although others have.
    """
    found = {}
    for name, entry in front.functions.items():
        if lookup(name) is not None or name in _WORDS or name.upper() in ast.AGGREGATES:
            raise UnfitFunction.of_language(source, entry.at, entry.name)
        code = codes.get(entry.name)
        if codes and code is None:
            raise UnfitFunction.no_code(source, entry.at, entry.name, codes)
        line, column = entry.at
        place = Place(pattern, source.file, line, column, source.excerpt(line))
        found[name] = declared(entry, code, place)
    return found


def identity_of(front: FrontMatter, codes: Mapping[str, Code], values: Iterable[ast.Node]) -> list[list[object]]:
    """What a pattern's functions add to its identity: those that are called, and their code."""
    called = sorted({call.function for value in values for call in value.heavy} & front.functions.keys())
    entries = [front.functions[name] for name in called]
    return [
        [one.name, one.call, one.symmetric, one.result, codes[one.name].digest if one.name in codes else ""]
        # Only where it differs from the default, so that earlier hashes stay valid.
        + ([] if one.vectorised else ["one pair at a time"])
        for one in entries
    ]
