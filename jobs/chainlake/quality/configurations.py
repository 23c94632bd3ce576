"""Great Expectations asks each expectation for its configuration some eighty times while it validates a suite, and
makes it anew from the fields each time: a third of an audit. Within :func:`kept` it is made once per expectation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

#: The configurations made so far: id of an expectation → (the expectation, which keeps the id its own, configuration).
Kept = dict[int, tuple[Any, Any]]

_kept: ContextVar[Kept | None] = ContextVar("configurations", default=None)


@contextmanager
def kept() -> Iterator[Kept]:
    """Keep the configurations of expectations, which nobody must change meanwhile, until the end.

    Yields:
        what is kept.
    """
    _install()
    token = _kept.set({})
    try:
        found = _kept.get()
        assert found is not None
        yield found
    finally:
        _kept.reset(token)


def _install() -> None:
    """Let expectations look for theirs; does nothing a second time."""
    from great_expectations.expectations.expectation import Expectation

    made = vars(Expectation)["configuration"]
    if not isinstance(made, _Configuration):
        setattr(Expectation, "configuration", _Configuration(made.fget))  # noqa: B010 (a property is no plain value)


class _Configuration(property):
    """The property of an expectation; what it is outside of :func:`kept`."""

    def __get__(self, one: Any, owner: Any = None) -> Any:
        found = _kept.get()
        if one is None or found is None:
            return super().__get__(one, owner)
        if id(one) not in found:
            found[id(one)] = (one, super().__get__(one, owner))
        return found[id(one)][1]
