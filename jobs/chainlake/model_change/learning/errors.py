"""What can be wrong in the file of a model whose nodes share what they learn."""

from __future__ import annotations

from chainlake.errors import DefinitionError


class WrongSync(DefinitionError):
    """The file does not say clearly when learners synchronise."""

    @classmethod
    def one_of_two(cls, forms: str) -> WrongSync:
        """Both ways of synchronising are given, or neither."""
        return cls("exactly one of 'dynamic' and 'static' is needed", hint=f"Allowed: {forms}.")

    @classmethod
    def every(cls, forms: str) -> WrongSync:
        """How often to synchronise is given twice."""
        return cls("'static' already says how often", hint=f"Allowed: {forms}.")
