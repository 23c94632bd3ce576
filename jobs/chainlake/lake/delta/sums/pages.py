"""Checksums of Parquet pages: Arrow and Spark write them when they write a page and verify them when they read one.

Without them a flipped bit in a page turns into another value unnoticed. delta-rs writes none, and neither delta-rs nor
DuckDB verifies them (docs/maintenance.md says what that leaves).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow.dataset as ds


def verified() -> ds.ParquetFragmentScanOptions:
    """Options of a scan that refuses a page whose checksum is wrong; pages without one are read as they are."""
    import pyarrow.dataset as ds

    return ds.ParquetFragmentScanOptions(page_checksum_verification=True, pre_buffer=True)
