"""What the simulator sets around a seed: nothing printed, small limits, and work by Spark where a seed asks for it."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from unittest.mock import patch

from chainlake.lake.records import ops
from chainlake.lake.upkeep import maintain as maintaining
from chainlake.quality.audit import Audit


@contextlib.contextmanager
def large() -> Iterator[None]:
    """As if the lake were in a store that only Spark reads and changes, and every input were large."""
    with patch.dict(os.environ, CHAINLAKE_ENGINE="spark"):
        yield


@contextlib.contextmanager
def quick() -> Iterator[None]:
    """No Data Docs: pages that nobody reads cost more than the audits; compaction at a few files instead of many."""
    with (
        patch.object(Audit, "build_docs", lambda audit: audit.home.docs),
        patch.object(ops, "COMPACT_ABOVE", 12),
        patch.object(maintaining, "COMPACT_ABOVE", 1),
    ):
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing that the steps print is shown."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
