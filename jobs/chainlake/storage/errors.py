"""The ways in which an object store can fail, in one sentence each."""

from __future__ import annotations

import os
import re

from chainlake.errors import InfrastructureError

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
#: Words that mark an error of the store in delta-rs' messages.
_STORE = re.compile(
    r"Generic (?:S3|GCS|MicrosoftAzure) error|lacked (?:the necessary privileges|valid authentication credentials)"
    r"|ObjectStore error|loading credentials|<Code>NoSuchBucket</Code>"
)
_REFUSED = re.compile(
    r"SignatureDoesNotMatch|InvalidAccessKeyId|AccessDenied|ExpiredToken|InvalidToken|403 Forbidden|401 Unauthorized"
    r"|lacked the necessary privileges|lacked valid authentication|loading credentials"
)
_AWAY = re.compile(
    r"Connection refused|error sending request|timed out|dns error|50[0234] |connection (?:reset|closed)", re.I
)
_CODE, _STATUS = re.compile(r"<Code>([\w.]+)</Code>"), re.compile(r"\b([45]\d\d [A-Z]\w+(?: \w+)?)")
_PLACES = "CHAINLAKE_LAKE or CHAINLAKE_LANDING"
_SETTINGS = "CHAINLAKE_STORE_ACCESS_KEY and CHAINLAKE_STORE_SECRET_KEY (or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"


class StoreFailed(InfrastructureError):
    """The object store does not do what it is asked to."""

    @classmethod
    def refused(cls, place: str, code: str) -> StoreFailed:
        """It does not know the key, or denies it access."""
        return cls(f"the object store refuses access to {place} ({code})", hint=f"Check {_SETTINGS}.")

    @classmethod
    def no_bucket(cls, place: str) -> StoreFailed:
        """The bucket is missing."""
        return cls(f"the object store has no bucket for {place}", hint=f"Create it, or fix {_PLACES}.")

    @classmethod
    def away(cls, place: str) -> StoreFailed:
        """It does not answer."""
        at = os.environ.get("AWS_ENDPOINT_URL")
        where = f" at {at}" if at else ""
        hint = "Check CHAINLAKE_STORE_ENDPOINT and whether the store is up; then run this again."
        return cls(f"the object store{where} for {place} does not answer", hint=hint)

    @classmethod
    def other(cls, place: str, text: str) -> StoreFailed:
        """It failed in another way."""
        return cls(f"the object store failed for {place}: {text}", hint="Run this again.")

    @classmethod
    def no_commit(cls, table: str, version: int) -> StoreFailed:
        """It refuses a commit as if the version existed, and the version does not exist."""
        return cls(
            f"the object store refuses the commit of version {version} of {table} as if that version existed, but it "
            "does not; nothing was committed",
            hint="Run this again. If the error remains, check whether a rule of the bucket forbids the write.",
        )

    @classmethod
    def unconditional(cls, place: str) -> StoreFailed:
        """It overwrites files when it must not."""
        return cls(
            f"the object store for {place} does not honour conditional writes (If-None-Match): it told two writers of "
            "one file that their write succeeded, so commits would be lost; nothing was written",
            hint="Use a store that refuses the second one, as Amazon S3 and newer versions of others do.",
        )

    @classmethod
    def undecided(cls, place: str) -> StoreFailed:
        """It could not be found out whether it overwrites files when it must not."""
        return cls(
            f"it is unknown whether the object store for {place} honours conditional writes (If-None-Match)",
            hint="Run this again.",
        )

    @classmethod
    def no_scheme(cls, lake: str) -> StoreFailed:
        """The path has an unknown scheme."""
        return cls(f"no object store is known for {lake}", hint=f"Begin {_PLACES} with s3://, or name a folder.")


def store_error(error: BaseException, place: str) -> StoreFailed | None:
    """Turn a library's error into ours if it comes from an object store; else ``None``.

    Args:
        error: what was raised.
        place: what was read or written.
    """
    text = _ANSI.sub("", str(error))
    if _STORE.search(text) is None:
        return None
    if "NoSuchBucket" in text:
        return StoreFailed.no_bucket(place)
    # The store's own error code says more than the HTTP status, which comes first.
    found = _CODE.search(text) or _STATUS.search(text)
    word = "no key" if "loading credentials" in text else "no word why"
    code = word if found is None else found[1]
    if _REFUSED.search(text):
        return StoreFailed.refused(place, code)
    if _AWAY.search(text):
        return StoreFailed.away(place)
    return StoreFailed.other(place, code if found is not None else " ".join(text.split())[:200])
