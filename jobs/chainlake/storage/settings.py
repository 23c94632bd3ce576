"""Which store to use and with which key: our environment variables, and those that libraries read."""

from __future__ import annotations

import os
from pathlib import Path

from chainlake.env.variables import value_of
from chainlake.errors import InfrastructureError

#: Our variable → the one that libraries read. Each also has a form ``…_FILE`` that names a file with the value.
VARIABLES = {
    "CHAINLAKE_STORE_ENDPOINT": "AWS_ENDPOINT_URL",
    "CHAINLAKE_STORE_REGION": "AWS_REGION",
    "CHAINLAKE_STORE_ACCESS_KEY": "AWS_ACCESS_KEY_ID",
    "CHAINLAKE_STORE_SECRET_KEY": "AWS_SECRET_ACCESS_KEY",
    "CHAINLAKE_STORE_TOKEN": "AWS_SESSION_TOKEN",
}

#: Variables that are also valid on another machine; names of files and profiles are not.
_CARRIED = (*VARIABLES.values(), "AWS_DEFAULT_REGION", "AWS_ALLOW_HTTP", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST")


class UnreadableSetting(InfrastructureError):
    """A file that should hold a setting cannot be read."""

    @classmethod
    def of(cls, name: str, path: str, error: OSError) -> UnreadableSetting:
        """Args: the variable, the file it names, and why it cannot be read."""
        return cls(f"{name} names {path}, which cannot be read: {error.strerror}", key=name)


def apply_settings() -> None:
    """Set the store's settings for this process and those it starts, under the names that libraries read.

    Raises:
        UnreadableSetting: a file that a variable names cannot be read.
        WrongVariable: the store's address is none.
    """
    for ours, theirs in VARIABLES.items():
        value = os.environ.get(ours) or _from_file(f"{ours}_FILE")
        if value:
            os.environ[theirs] = value
    if value_of("AWS_ENDPOINT_URL").startswith("http://"):
        # Whoever writes http:// means it, but libraries require this variable, too.
        os.environ.setdefault("AWS_ALLOW_HTTP", "true")


def carried(*paths: str) -> dict[str, str]:
    """The settings that a process on another machine needs to read ``paths``; none if they are on a disk."""
    if not any("://" in path for path in paths):
        return {}
    apply_settings()
    return {name: os.environ[name] for name in _CARRIED if os.environ.get(name)}


def _from_file(name: str) -> str | None:
    path = os.environ.get(name)
    if not path:
        return None
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UnreadableSetting.of(name, path, error) from None
