"""``alerts`` of a pattern or a model: where its matches or changes are told, and when not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import time
from typing import Any

from chainlake.words import nearest

_KEYS = ("webhook", "mute", "withdrawn")
_VARIABLE = re.compile(r"\$[A-Z_][A-Z0-9_]*\Z")
_SPAN = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)\Z")
#: An error of the key ``alerts``: what is wrong, and what to do.
Wrong = Callable[[str, str | None], Exception]


@dataclass(frozen=True)
class Alerts:
    """Where and when the matches of a pattern, or the changes of a model, are told.

    Args:
        webhook: an address, or ``$NAME`` of the environment variable that has it.
        mute: stretches of the local day, half-open, in which nothing is sent; one may pass midnight.
        withdrawn: whether it is told, too, that one is gone again.
    """

    webhook: str
    mute: tuple[tuple[time, time], ...] = ()
    withdrawn: bool = True

    def muted(self, now: time) -> bool:
        """Whether nothing is sent at this time of the local day."""
        return any((begin <= now < end) if begin < end else (now >= begin or now < end) for begin, end in self.mute)


def read_alerts(value: Any, wrong: Wrong) -> Alerts:
    """What a definition says of alerts.

    Args:
        value: of the key ``alerts``.
        wrong: makes an error.

    Raises:
        DefinitionError: not of this form.
    """
    if not isinstance(value, dict):
        raise wrong("alerts must be a map", "Write alerts: {webhook: $MY_WEBHOOK}.")
    for key in value:
        if key not in _KEYS:
            raise wrong(f"alerts have no key {key}", nearest(key, _KEYS))
    webhook = value.get("webhook")
    if not isinstance(webhook, str) or not (
        _VARIABLE.match(webhook) or re.match(r"https?://[^\s/]+", webhook, re.IGNORECASE)
    ):
        hint = "Write https://… or, since addresses often hold a secret, $NAME of an environment variable."
        raise wrong("webhook must be an address", hint)
    withdrawn = value.get("withdrawn", True)
    if not isinstance(withdrawn, bool):
        raise wrong("withdrawn must be true or false", None)
    mute = value.get("mute", [])
    spans = mute if isinstance(mute, list) else [mute]
    return Alerts(webhook, tuple(_span(one, wrong) for one in spans), withdrawn)


def _span(text: Any, wrong: Wrong) -> tuple[time, time]:
    found = _SPAN.match(text) if isinstance(text, str) else None
    numbers = [] if found is None else [int(part) for part in found.groups()]
    if not numbers or numbers[:2] == numbers[2:]:
        raise wrong(f"mute: {text} is no stretch of a day", "Write mute: ['22:00-06:00'], in the source's zone.")
    return time(numbers[0], numbers[1]), time(numbers[2], numbers[3])
