"""Chainlake: where in this history did these events happen, and when did this linear relation change?

Example:
    >>> from datetime import UTC, datetime
    >>> import chainlake as cl
    >>> events = [
    ...     {"id": "1", "type": "Bar", "ts": datetime(2025, 10, 1, 9, 30, tzinfo=UTC), "attrs": {"close": 10.0}},
    ...     {"id": "2", "type": "Bar", "ts": datetime(2025, 10, 1, 9, 31, tzinfo=UTC), "attrs": {"close": 11.0}},
    ... ]
    >>> list(cl.match("PATTERN SEQ(Bar a, Bar b) WHERE b.close > a.close WITHIN 5 min", events))
    [{'a': '1', 'b': '2'}]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainlake.cep.episodes.found import episodes
    from chainlake.cep.library import match
    from chainlake.cep.pattern import compile_pattern
    from chainlake.cep.search.find import find
    from chainlake.model_change.library import monitor
    from chainlake.operations.lake import Lake

__all__ = ["Lake", "compile_pattern", "episodes", "find", "match", "monitor"]

#: Where the public names are; each is imported when it is first asked for, since DAG files import this package often.
_PLACES = {
    "Lake": "chainlake.operations.lake",
    "compile_pattern": "chainlake.cep.pattern",
    "episodes": "chainlake.cep.episodes.found",
    "find": "chainlake.cep.search.find",
    "match": "chainlake.cep.library",
    "monitor": "chainlake.model_change.library",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module 'chainlake' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
