"""Errors that point into the text of a pattern."""

from __future__ import annotations

from copy import copy
from typing import Self

from chainlake.cep.language.source_text import At, SourceText
from chainlake.errors import DefinitionError


class PatternError(DefinitionError):
    """The text of a pattern is wrong at some place; each kind of fault has its own class."""

    @classmethod
    def _at(cls, source: SourceText, at: At, what: str, hint: str | None = None, *, key: str | None = None) -> Self:
        """For subclasses: an error that says ``what`` is wrong at a place of ``source``, with that line."""
        line, column = at
        if line < 1:
            return cls(what, file=source.file, hint=hint, key=key)
        excerpt = source.excerpt(line)
        return cls(what, file=source.file, line=line, column=column, hint=hint, key=key, excerpt=excerpt)


class Referred(PatternError):
    """An error that another reader (of YAML, alerts or sources) finds in the text of a pattern."""

    @classmethod
    def of(cls, source: SourceText, at: At, what: str, hint: str | None, *, key: str | None = None) -> Referred:
        """For the message and the hint of the other reader, at a place in the pattern."""
        return cls._at(source, at, what, hint, key=key)

    @classmethod
    def no_yaml(cls, source: SourceText, at: At, problem: str, hint: str | None, key: str | None) -> Referred:
        """The front matter is not YAML, or has a key twice; ``problem``: the message of the YAML reader."""
        return cls._at(source, at, problem.replace("not valid YAML", "the front matter is not YAML"), hint, key=key)


def as_in(source: SourceText, error: DefinitionError) -> DefinitionError:
    """``error``, found in a changed copy of ``source``, with the line as it is in ``source``."""
    if error.line is None or error.file != source.file:
        return error
    changed = copy(error)
    changed.column, changed.excerpt = error.column or 1, source.excerpt(error.line)
    return changed
