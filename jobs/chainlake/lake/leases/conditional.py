"""Files in a store that only one of several writers can make, and whether a store guarantees that.

They are made as delta-rs makes a table's first log entry: by a write that the store must refuse if the file exists
(If-None-Match). Every commit is made in the same way, with the same settings, in every kind of store.
"""

from __future__ import annotations

import json
import threading
import uuid

from chainlake.lake.leases.machine import LockHolder
from chainlake.paths import Home
from chainlake.storage.errors import StoreFailed, store_error
from chainlake.storage.resolve import storage_of
from chainlake.storage.settings import apply_settings

#: The first log entry of a table.
ENTRY = "_delta_log/00000000000000000000.json"
#: The folder of the lake for these files.
FOLDER = "chainlake-locks"
#: How many writers race to make one file, and how many races there are at most until two of them collide.
_WRITERS, _ROUNDS = 3, 20

_kept_to: set[str] = set()
_guard = threading.Lock()


def make(path: str, what: LockHolder) -> bool | None:
    """Make a file that only one writer can make.

    Args:
        path: path of the folder that holds it.
        what: its content.

    Returns:
        whether it was made here; ``None`` if another writer's was there before the store was asked to write.
    """
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable
    from deltalake.exceptions import CommitFailedError, DeltaError

    apply_settings()
    try:
        DeltaTable.create(
            path,
            pa.schema([("none", pa.int64())]),
            mode="error",
            description=json.dumps(what),
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    except CommitFailedError:
        return False
    except DeltaError as error:
        if "already exists" not in str(error):
            raise
        return None
    except OSError as error:
        raise (store_error(error, path) or error) from error
    return True


def read(path: str) -> LockHolder | None:
    """The content of such a file; ``None`` if there is none."""
    data = storage_of(path).read(f"{path}/{ENTRY}")
    if data is None:
        return None
    actions = [json.loads(line) for line in data.decode().splitlines() if line.strip()]
    found: LockHolder = json.loads(next(one["metaData"]["description"] for one in actions if "metaData" in one))
    return found


def remove(path: str) -> None:
    """Remove such a file."""
    storage_of(path).remove(f"{path}/{ENTRY}")


def require_conditional_writes(home: Home) -> None:
    """Make sure that the lake's store refuses the second writer of a file; tried once per process.

    Raises:
        StoreFailed: it does not, or cannot be used at all.
    """
    with _guard:
        if home.lake in _kept_to:
            return
        for _ in range(_ROUNDS):
            path = f"{home.lake}/{FOLDER}/probe/{uuid.uuid4().hex}"
            try:
                answers = _race(path)
            finally:
                remove(path)
            if answers.count(True) > 1:
                raise StoreFailed.unconditional(home.lake)
            if False in answers:
                _kept_to.add(home.lake)
                return
        raise StoreFailed.undecided(home.lake)


def _race(path: str) -> list[bool | None]:
    """What :func:`make` returns to each of several writers of one file."""
    answers: list[bool | None] = []
    failed: list[BaseException] = []
    start = threading.Barrier(_WRITERS)

    def one() -> None:
        start.wait()
        try:
            answers.append(make(path, {}))
        except BaseException as error:  # raised below, in the caller's thread
            failed.append(error)

    writers = [threading.Thread(target=one, daemon=True) for _ in range(_WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    if failed:
        raise failed[0]
    return answers
