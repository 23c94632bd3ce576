"""Makes the configuration of each expectation only once, within :func:`kept`.

While Great Expectations validates a suite, it asks each expectation for its configuration some eighty times, and makes
it from the fields each time, which takes a third of an audit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

#: The configurations made so far: id of an expectation → (the expectation, kept so that no other object gets its id;
#: its configuration).
Kept = dict[int, tuple[Any, Any]]

_kept: ContextVar[Kept | None] = ContextVar("configurations", default=None)


@contextmanager
def kept() -> Iterator[Kept]:
    """Keep the configurations of expectations until the end of the block; they must not be changed in it.

    Yields:
        the configurations kept so far.
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
    """Let expectations look for kept configurations; does nothing a second time."""
    from great_expectations.expectations.expectation import Expectation

    made = vars(Expectation)["configuration"]
    if not isinstance(made, _Configuration):
        setattr(Expectation, "configuration", _Configuration(made.fget))  # noqa: B010 (a property is no plain value)


class _Configuration(property):
    """The property ``configuration`` of an expectation; outside of :func:`kept` it is what it was."""

    def __get__(self, one: Any, owner: Any = None) -> Any:
        found = _kept.get()
        if one is None or found is None:
            return super().__get__(one, owner)
        if id(one) not in found:
            found[id(one)] = (one, super().__get__(one, owner))
        return found[id(one)][1]
