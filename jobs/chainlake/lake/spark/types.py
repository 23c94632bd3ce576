"""Arrow types to Spark types: ``schemas/`` declares its schemas in Arrow, and Spark writes the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType


def spark_type(kind: pa.DataType) -> DataType:
    """The Spark type of an Arrow type; a timestamp with a zone is Spark's ``TimestampType`` (an instant)."""
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(kind)


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of an Arrow schema, with nullability and the comments from the field metadata."""
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field in schema:
        comment = (field.metadata or {}).get(b"comment")
        metadata = {"comment": comment.decode()} if comment else {}
        fields.append(StructField(field.name, spark_type(field.type), field.nullable, metadata))
    return StructType(fields)


def frame_of(spark: SparkSession, rows: pa.Table, schema: pa.Schema | None = None) -> DataFrame:
    """``rows`` as a DataFrame.

    It is made from one chunk: Spark cannot make a frame from a table without chunks, and silently loses everything
    after an empty one.

    Args:
        spark: the session.
        rows: the rows.
        schema: their schema with nullability and comments, if that of ``rows`` does not have them.
    """
    return spark.createDataFrame(rows.combine_chunks() if len(rows) else [], spark_schema(schema or rows.schema))
