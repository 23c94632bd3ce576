"""Errors that point into the text of a pattern."""

from __future__ import annotations

from copy import copy
from typing import Self

from chainlake.cep.language.source_text import At, SourceText
from chainlake.errors import DefinitionError


class PatternError(DefinitionError):
    """The text of a pattern is wrong at some place; each kind of fault has a class of its own."""

    @classmethod
    def _at(cls, source: SourceText, at: At, what: str, hint: str | None = None, *, key: str | None = None) -> Self:
        """For classes of their own: ``what`` is wrong at a place of ``source``, with the line it points to."""
        line, column = at
        if line < 1:
            return cls(what, file=source.file, hint=hint, key=key)
        excerpt = source.excerpt(line)
        return cls(what, file=source.file, line=line, column=column, hint=hint, key=key, excerpt=excerpt)


class Referred(PatternError):
    """What another reader, of YAML, alerts or sources, finds wrong in the text of a pattern."""

    @classmethod
    def of(cls, source: SourceText, at: At, what: str, hint: str | None, *, key: str | None = None) -> Referred:
        """For what the other reader says and advises, at its place in the pattern."""
        return cls._at(source, at, what, hint, key=key)

    @classmethod
    def no_yaml(cls, source: SourceText, at: At, problem: str, hint: str | None, key: str | None) -> Referred:
        """The front matter is no YAML, or has a key twice; ``problem`` speaks of the YAML."""
        return cls._at(source, at, problem.replace("not valid YAML", "the front matter is not YAML"), hint, key=key)


def as_in(source: SourceText, error: DefinitionError) -> DefinitionError:
    """``error``, found in a changed copy of ``source``, with the line as it stands in ``source``."""
    if error.line is None or error.file != source.file:
        return error
    changed = copy(error)
    changed.column, changed.excerpt = error.column or 1, source.excerpt(error.line)
    return changed
