"""``alerts`` of a pattern or a model: where its matches or changes are sent, and when not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import time
from typing import Any

from chainlake.definitions.errors import UnfitAlerts

#: The keys of ``alerts``.
KEYS = ("webhook", "mute", "withdrawn")
_VARIABLE = re.compile(r"\$[A-Z_][A-Z0-9_]*\Z")
_SPAN = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)\Z")


@dataclass(frozen=True)
class Alerts:
    """Where and when the matches of a pattern, or the changes of a model, are sent.

    Args:
        webhook: an address, or ``$NAME`` of the environment variable that holds it.
        mute: half-open spans of the local day in which nothing is sent; a span may pass midnight.
        withdrawn: whether a message is also sent when a match or change is withdrawn.
    """

    webhook: str
    mute: tuple[tuple[time, time], ...] = ()
    withdrawn: bool = True

    def muted(self, now: time) -> bool:
        """Whether nothing is sent at this time of the local day."""
        return any((begin <= now < end) if begin < end else (now >= begin or now < end) for begin, end in self.mute)


def read_alerts(value: Any) -> Alerts:
    """Read what a definition says about alerts.

    Args:
        value: the value of the key ``alerts``.

    Raises:
        UnfitAlerts: it has another form; the caller adds the place.
    """
    if not isinstance(value, dict):
        raise UnfitAlerts.no_map()
    for key in value:
        if key not in KEYS:
            raise UnfitAlerts.unknown(key, KEYS)
    webhook = value.get("webhook")
    if not isinstance(webhook, str) or not (
        _VARIABLE.match(webhook) or re.match(r"https?://[^\s/]+", webhook, re.IGNORECASE)
    ):
        raise UnfitAlerts.no_address()
    withdrawn = value.get("withdrawn", True)
    if not isinstance(withdrawn, bool):
        raise UnfitAlerts.no_switch("withdrawn")
    mute = value.get("mute", [])
    spans = mute if isinstance(mute, list) else [mute]
    return Alerts(webhook, tuple(_span(one) for one in spans), withdrawn)


def _span(text: Any) -> tuple[time, time]:
    found = _SPAN.match(text) if isinstance(text, str) else None
    numbers = [] if found is None else [int(part) for part in found.groups()]
    if not numbers or numbers[:2] == numbers[2:]:
        raise UnfitAlerts.no_range(text)
    return time(numbers[0], numbers[1]), time(numbers[2], numbers[3])
