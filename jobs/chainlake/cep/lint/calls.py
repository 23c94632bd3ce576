"""Warnings about calls of functions of pairs that cost more than they must, and about functions never called."""

from __future__ import annotations

from collections.abc import Iterator

from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.lint.findings import Unconnected, Unused
from chainlake.cep.pattern import Pattern
from chainlake.errors import DefinitionError


def costly_calls(pattern: Pattern, source: SourceText) -> Iterator[DefinitionError]:
    """Warnings about what a pattern's author probably does not intend with its calls.

    Args:
        pattern: the pattern.
        source: its text.
    """
    values = (*pattern.extras.conditions, *pattern.extras.measured)
    called = {call.function for value in values for call in value.heavy}
    for name, entry in pattern.front.functions.items():
        if name not in called:
            yield Unused.function(source, entry.at, entry.name)
    for branch in pattern.extras.written:
        for clause in branch.every_clause if branch.stream is None else ():
            if clause.heavy and len(clause.names) > 1 and not _linked(branch, clause):
                call = next(call for literal in clause.literals for call in literal.heavy)
                yield Unconnected.called(source, call.at, call.function, clause.names)


def _linked(branch: Branch, called: Clause) -> bool:
    """Whether cheaper conditions tie all names of a call to each other."""
    links = [c.names for c in branch.every_clause if not c.heavy and len(c.names) > 1 and c.names <= called.names]
    near = {min(called.names)}
    while more := {name for names in links if names & near for name in names} - near:
        near |= more
    return near == called.names
