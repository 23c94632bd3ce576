"""The environment variables of ours: which there are, and what their values can be."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import get_args

from chainlake.errors import UsageError
from chainlake.schemas.ops_rows import Engine
from chainlake.words import closest

_STORE = ("ENDPOINT", "REGION", "ACCESS_KEY", "SECRET_KEY", "TOKEN")
#: All that is read by us, by the containers, by a new project's checks, or by our tests.
NAMES = frozenset(
    {
        *("CHAINLAKE_HOME", "CHAINLAKE_LAKE", "CHAINLAKE_LANDING", "CHAINLAKE_CONFIG", "CHAINLAKE_CACHE"),
        *("CHAINLAKE_JARS", "CHAINLAKE_ENGINE", "CHAINLAKE_SPARK_CONF", "CHAINLAKE_SHUFFLE_PARTITIONS"),
        *("CHAINLAKE_FAILURE_WEBHOOK", "CHAINLAKE_POOL", "CHAINLAKE_DB", "CHAINLAKE_LOCKS", "CHAINLAKE_LEASE_SECONDS"),
        *(f"CHAINLAKE_STORE_{end}" for end in _STORE),
        *(f"CHAINLAKE_STORE_{end}_FILE" for end in _STORE),
        *("CHAINLAKE_DRIVERS", "CHAINLAKE_LAUNCHED_FOR", "CHAINLAKE_CONFINED", "CHAINLAKE_CDS_DUMP", "CHAINLAKE_FAULT"),
        *("CHAINLAKE_VERSION", "CHAINLAKE_POOL_SLOTS", "CHAINLAKE_PAGE_PORT", "CHAINLAKE_SPARK_PORT"),
        *("CHAINLAKE_INSTALL", "CHAINLAKE_ALL_DAMAGES", "CHAINLAKE_ALL_KILLS", "CHAINLAKE_ALL_SPARK"),
        *("CHAINLAKE_S3PROXY", "CHAINLAKE_MOTO"),
    }
)
_ENGINES = ("auto", *get_args(Engine))


@dataclass(frozen=True)
class _Form:
    """What the values of a variable can be.

    Args:
        fits: whether a value is one.
        write: what to write, as the end of the sentence "Write …".
        secret: whether a value may hold a password, so that only what comes before its first colon is shown.
    """

    fits: Callable[[str], bool]
    write: str
    secret: bool = False


def _seconds(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def _address(text: str) -> bool:
    """Whether a store's client can take it; of anything else it makes a panic, which nothing catches."""
    found = re.fullmatch(r"https?://([^\s/@]+@)?([\w.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?(/[\w./~-]*)?", text, re.ASCII)
    return found is not None and int((found[3] or ":1")[1:]) <= 65535


_ADDRESS = _Form(_address, "http://HOST:PORT or https://HOST")
_PLACE = _Form(
    lambda text: re.match("(s3[an]?|gs|gcs|az|abfss?):(?!//[^/])", text) is None,
    "s3://BUCKET/PREFIX, or the path of a folder",
)
_FORMS = {
    "CHAINLAKE_LAKE": _PLACE,
    "CHAINLAKE_LANDING": _PLACE,
    "CHAINLAKE_STORE_ENDPOINT": _ADDRESS,
    "AWS_ENDPOINT_URL": _ADDRESS,
    "CHAINLAKE_ENGINE": _Form(lambda text: text in _ENGINES, f"{', '.join(_ENGINES[:-1])} or {_ENGINES[-1]}"),
    "CHAINLAKE_SHUFFLE_PARTITIONS": _Form(
        lambda text: re.fullmatch("0*[1-9][0-9]{0,8}", text) is not None, "a whole number above 0, such as 4"
    ),
    # Above that, not enough ports follow to try.
    "CHAINLAKE_PAGE_PORT": _Form(
        lambda text: re.fullmatch("[0-9]{1,5}", text) is not None and 0 < int(text) <= 65335,
        "a number from 1 to 65335, such as 8080",
    ),
    "CHAINLAKE_LEASE_SECONDS": _Form(_seconds, "a number of seconds above 0, such as 60"),
    "CHAINLAKE_LOCKS": _Form(
        lambda text: text.startswith(("postgresql://", "postgres://", "postgresql+psycopg2://")),
        "postgresql://USER@HOST/DATABASE, or unset it: locks are then files on a disk, or leases in a store",
        secret=True,
    ),
    # Spark hands the text to Java, which knows no other letters and takes a bare number for bytes.
    "SPARK_DRIVER_MEMORY": _Form(lambda text: re.fullmatch("0*[1-9][0-9]*[kKmMgGtT]", text) is not None, "1g or 1024m"),
}


class WrongVariable(UsageError):
    """The value of an environment variable is not one that it can have."""

    @classmethod
    def of(cls, name: str, value: str, write: str, *, secret: bool = False) -> WrongVariable:
        """For a variable and what to write instead; of a value that may hold a password, the beginning is shown."""
        what = f"{name} cannot begin with '{value.partition(':')[0]}'" if secret else f"{name} is '{value}'"
        return cls(what, hint=f"Write {write}.").holding(name=name)


def value_of(name: str) -> str:
    """The value of an environment variable; empty if it is not set.

    Raises:
        WrongVariable: its value is not one that it can have.
    """
    value, form = os.environ.get(name, ""), _FORMS.get(name)
    if value and form is not None and not form.fits(value):
        raise WrongVariable.of(name, value, form.write, secret=form.secret)
    return value


def check_variables() -> None:
    """Check the values of all environment variables that are read somewhere.

    Raises:
        WrongVariable: the value of one is not one that it can have.
    """
    for name in _FORMS:
        # Those of others matter only where a store is used.
        if not name.startswith("AWS_"):
            value_of(name)


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """A sentence for each environment variable that is called like ours but is read nowhere.

    Args:
        environment: that of this process.
    """
    return [_unread(name) for name in sorted(environment) if name.startswith("CHAINLAKE_") and name not in NAMES]


def _unread(name: str) -> str:
    # All begin alike, so only what follows tells which one was meant.
    ends = {known.removeprefix("CHAINLAKE_") for known in NAMES}
    meant = closest(name.removeprefix("CHAINLAKE_"), sorted(ends))
    guess = "docs/deploy.md lists those that are" if meant is None else f"did you mean CHAINLAKE_{meant}?"
    return f"the environment variable {name} is not read: {guess}"
