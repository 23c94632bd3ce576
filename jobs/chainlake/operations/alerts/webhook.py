"""One message to a webhook: tried again while there is hope, with longer and longer pauses."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chainlake.definitions.alerting import Alerts
from chainlake.errors import InfrastructureError, UsageError


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no answer that sends elsewhere: a message would get there as a GET without it, and count as taken."""

    def redirect_request(self, *_: Any) -> None:
        """Nowhere."""


_OPENER = urllib.request.build_opener(_Stay)
#: Answers after which the same message may be taken later.
_LATER = (408, 425, 429)


class NotTaken(InfrastructureError):
    """A webhook does not take a message."""

    @classmethod
    def refused(cls, name: str, status: int) -> NotTaken:
        """It says that the message is wrong, so that to try again is of no use."""
        moved = ", which sends elsewhere" if 300 <= status < 400 else ""
        what = f"the webhook of {name} answered {status}{moved} and did not take the message"
        return cls(what, hint="Fix the receiver; the next 'alerts send' begins with the same message.")

    @classmethod
    def given_up(cls, name: str, tries: int, why: str) -> NotTaken:
        """It did not answer as it should, however often it was tried."""
        what = f"the webhook of {name} was tried {tries} times: {why}"
        return cls(what, hint="The next 'alerts send' begins with the same message.")


class NoAddress(UsageError):
    """There is no address of a webhook that could be used."""

    @classmethod
    def of(cls, name: str, variable: str) -> NoAddress:
        """For the variable that the alerts of a pattern or model go by."""
        what = f"the environment variable {variable} does not hold an address for the alerts of {name}"
        return cls(what, hint=f"Set {variable} to https://….")

    @classmethod
    def unusable(cls, name: str) -> NoAddress:
        """For one that is none; it is not shown, for it may hold a secret."""
        hint = "Write https://HOST/PATH without spaces, letters beyond ASCII, or a user and a password before the host."
        return cls(f"the webhook address for the alerts of {name} is not valid", hint=hint)


@dataclass(frozen=True)
class Trying:
    """How often and how long a message is tried.

    Args:
        tries: at most.
        first_pause_s: after the first try; each further one is twice as long.
        timeout_s: how long an answer may take.
        sleep: waits.
    """

    tries: int = 5
    first_pause_s: float = 1.0
    timeout_s: float = 10.0
    sleep: Callable[[float], None] = time.sleep


def address_of(name: str, alerts: Alerts) -> str:
    """Where the alerts of a pattern or model go.

    Args:
        name: whose they are, for errors.
        alerts: what it says of them.

    Raises:
        UsageError: the environment variable that it names has no address.
    """
    if not alerts.webhook.startswith("$"):
        return alerts.webhook
    variable = alerts.webhook[1:]
    address = os.environ.get(variable, "")
    if not address.lower().startswith(("http://", "https://")):
        raise NoAddress.of(name, variable)
    return address


def post(name: str, address: str, message: dict[str, Any], trying: Trying) -> None:
    """Send a message until it is taken.

    Args:
        name: of the pattern or model whose it is, for errors.
        address: of the webhook.
        message: with its ``id``, which is sent as the header ``Idempotency-Key``, too: a receiver that has seen it
            knows that it is the same message again.
        trying: how often.

    Raises:
        InfrastructureError: it is not taken.
        UsageError: the address is none.
    """
    body = json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": str(message["id"])}
    why = ""
    for number in range(trying.tries):
        if number:
            trying.sleep(trying.first_pause_s * 2 ** (number - 1))
        request = urllib.request.Request(address, body, headers, method="POST")
        try:
            with _OPENER.open(request, timeout=trying.timeout_s):
                return
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code not in _LATER:
                raise NotTaken.refused(name, error.code) from None
            why = f"it answered {error.code}"
        except (http.client.InvalidURL, UnicodeError):
            raise NoAddress.unusable(name) from None
        except (OSError, http.client.HTTPException) as error:
            # Not the address: it may hold a secret.
            why = f"{type(error).__name__}: {getattr(error, 'reason', error)}"
    raise NotTaken.given_up(name, trying.tries, why)
