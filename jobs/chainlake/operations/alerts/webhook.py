"""Posts a message to a webhook, and retries with increasing pauses as long as that may help."""

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
    """Follows no redirect: at the new address a GET without the message would arrive, and count as accepted."""

    def redirect_request(self, *_: Any) -> None:
        """Do not redirect."""


_OPENER = urllib.request.build_opener(_Stay)
#: Status codes after which the same message may be accepted later.
_LATER = (408, 425, 429)


class NotTaken(InfrastructureError):
    """A webhook does not accept a message."""

    @classmethod
    def refused(cls, name: str, status: int) -> NotTaken:
        """The webhook rejects the message, so trying again is of no use."""
        moved = ", which sends elsewhere" if 300 <= status < 400 else ""
        what = f"the webhook of {name} answered {status}{moved} and did not take the message"
        return cls(what, hint="Fix the receiver; the next 'alerts send' begins with the same message.")

    @classmethod
    def given_up(cls, name: str, tries: int, why: str) -> NotTaken:
        """The webhook did not answer as it should in any of the tries."""
        what = f"the webhook of {name} was tried {tries} times: {why}"
        return cls(what, hint="The next 'alerts send' begins with the same message.")


class NoAddress(UsageError):
    """There is no usable address of a webhook."""

    @classmethod
    def of(cls, name: str, variable: str, *, is_set: bool) -> NoAddress:
        """For the environment variable that the alerts of a pattern or model name; what it holds may be a secret."""
        wrong = "does not begin with http:// or https://" if is_set else "is not set"
        what = f"the alerts of {name} go to the address in the environment variable {variable}, which {wrong}"
        return cls(what, hint=f"Set {variable} to https://….")

    @classmethod
    def unusable(cls, name: str) -> NoAddress:
        """For an address that is not valid; it is not shown, since it may contain a secret."""
        hint = "Write https://HOST/PATH without spaces, letters beyond ASCII, or a user and a password before the host."
        return cls(f"the webhook address for the alerts of {name} is not valid", hint=hint)


@dataclass(frozen=True)
class Trying:
    """How often, and for how long, a message is tried.

    Args:
        tries: the largest number of tries.
        first_pause_s: pause after the first try, seconds; each further pause is twice as long.
        timeout_s: how long an answer may take, seconds.
        sleep: waits for a number of seconds.
    """

    tries: int = 5
    first_pause_s: float = 1.0
    timeout_s: float = 10.0
    sleep: Callable[[float], None] = time.sleep


def address_of(name: str, alerts: Alerts) -> str:
    """Where the alerts of a pattern or model go.

    Args:
        name: the pattern or model, for errors.
        alerts: what its file says about alerts.

    Raises:
        UsageError: the environment variable that ``alerts`` names holds no address.
    """
    if not alerts.webhook.startswith("$"):
        return alerts.webhook
    variable = alerts.webhook[1:]
    address = os.environ.get(variable, "")
    if not address.lower().startswith(("http://", "https://")):
        raise NoAddress.of(name, variable, is_set=bool(address))
    return address


def post(name: str, address: str, message: dict[str, Any], trying: Trying) -> None:
    """Send a message until it is accepted.

    Args:
        name: the pattern or model that the message is about, for errors.
        address: the webhook's address.
        message: the message; its ``id`` is also sent as the header ``Idempotency-Key``, so that a receiver can
            recognise a message that it has seen before.
        trying: how often, and for how long, to try.

    Raises:
        InfrastructureError: the message is not accepted.
        UsageError: the address is not valid.
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
            # The address is left out: it may contain a secret.
            why = f"{type(error).__name__}: {getattr(error, 'reason', error)}"
    raise NotTaken.given_up(name, trying.tries, why)
