"""Parquet files by their path, in any storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from chainlake.storage.resolve import storage_of

# Both import pandas if it is installed, which takes a second, and not every process that imports this reads files.
if TYPE_CHECKING:
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq


def parquet_file(path: str, **options: Any) -> pq.ParquetFile:
    """Open a file to read; ``options`` are those of ``pyarrow.parquet.ParquetFile``."""
    import pyarrow.parquet as pq

    files, place = storage_of(path).arrow(path)
    # From a store, the pieces of a row group are fetched together, not one by one.
    return pq.ParquetFile(place, filesystem=files, pre_buffer=files is not None, **options)


def parquet_writer(path: str, schema: pa.Schema, **options: Any) -> pq.ParquetWriter:
    """Open a file to write; ``options`` are those of ``pyarrow.parquet.ParquetWriter``."""
    import pyarrow.parquet as pq

    files, place = storage_of(path).arrow(path)
    return pq.ParquetWriter(place, schema, filesystem=files, **options)


def parquet_footer(path: str) -> pq.FileMetaData:
    """A file's footer."""
    import pyarrow.parquet as pq

    files, place = storage_of(path).arrow(path)
    return pq.read_metadata(place, filesystem=files)


def parquet_rows(path: str, **options: Any) -> pa.Table:
    """All rows of a file; ``options`` are those of ``pyarrow.parquet.read_table``."""
    import pyarrow.parquet as pq

    files, place = storage_of(path).arrow(path)
    return pq.read_table(place, filesystem=files, partitioning=None, **options)


def parquet_dataset(
    paths: Sequence[str], schema: pa.Schema | None = None, file_format: ds.ParquetFileFormat | None = None
) -> ds.Dataset:
    """Files of one storage as an Arrow dataset.

    Args:
        paths: paths of the files, at least one.
        schema: schema of the rows; the first file's if not given.
        file_format: how they are read.
    """
    import pyarrow.dataset as ds

    found = [storage_of(path).arrow(path) for path in paths]
    return ds.dataset(
        [place for _, place in found],
        schema=schema,
        format=file_format or ds.ParquetFileFormat(),
        filesystem=found[0][0],
    )
