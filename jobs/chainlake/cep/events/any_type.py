"""The value that means every event type, in patterns and where events are looked up by type."""

from __future__ import annotations

#: The type of a name that takes events of every type.
ANY_TYPE = "*"


def share_events(one: str, other: str) -> bool:
    """Whether an event can be of both types."""
    return one == other or ANY_TYPE in (one, other)
