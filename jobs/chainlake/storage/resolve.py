"""The storage of a path; the one place that looks at the form of paths."""

from __future__ import annotations

from functools import cache

from chainlake.storage.errors import StoreFailed
from chainlake.storage.local import LocalStorage
from chainlake.storage.objects import ObjectStorage
from chainlake.storage.port import Storage
from chainlake.storage.settings import apply_settings

_LOCAL = LocalStorage()
#: The schemes that delta-rs and Arrow both read; ``file`` is a folder that is treated as a store.
_SCHEMES = ("s3", "gs", "az", "abfss", "file")


def storage_of(path: str) -> Storage:
    """The storage that holds a path.

    Raises:
        StoreFailed: the path's scheme is not known.
    """
    scheme, mark, rest = path.partition("://")
    if not mark:
        return _LOCAL
    # The settings are also for callers that pass the same path to delta-rs next.
    apply_settings()
    return _objects(scheme, "" if scheme == "file" else rest.partition("/")[0])


@cache
def _objects(scheme: str, bucket: str) -> ObjectStorage:
    if scheme not in _SCHEMES:
        raise StoreFailed.no_scheme(f"{scheme}://{bucket}")
    return ObjectStorage(f"{scheme}://{bucket}")
