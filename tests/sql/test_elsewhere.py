"""The statements for other engines: each is run by the engine itself, which then gives the rows that DuckDB gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from chainlake.cli.main import main
from chainlake.lake.sql.elsewhere import as_hadoop_says
from chainlake.lake.sql.query import SqlConnection
from chainlake.paths import Home
from tests.sql.test_sql import event, write_matches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [
    {"a": event(0, 10.0), "b": [event(1, 9.0), event(2, 8.0)]},
    {"a": event(3, 7.0), "b": None},
    {"a": event(4, 6.0), "b": []},
]


@pytest.fixture
def orders(home: Home) -> Home:
    """A lake with the matches of a pattern that has the name of a word of SQL."""
    write_matches(home, "order", ROWS)
    return home


@pytest.fixture
def without_views(spark: SparkSession) -> Iterator[SparkSession]:
    """The shared session, without the views of the test once it has ended."""
    yield spark
    spark.sql("DROP SCHEMA IF EXISTS matches CASCADE")


def test_spark_gives_the_flat_rows_of_duckdb(
    orders: Home, without_views: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["views", "spark", "matches"]) == 0
    printed = capsys.readouterr().out.split(";\n")
    assert printed.pop() == "" and len(printed) == 3
    for statement in printed:
        without_views.sql(statement)
    found = without_views.sql("SELECT * FROM matches.order_flat ORDER BY match_id")
    wanted = SqlConnection(orders).query("SELECT * FROM matches.order_flat ORDER BY match_id")
    assert found.columns == [column[0] for column in wanted.description or ()]
    # Times as text, whatever the zone in which each shows them.
    seen = [tuple(str(value)[:19] for value in row) for row in found.collect()]
    assert seen == [tuple(str(value)[:19] for value in row) for row in wanted.fetchall()]
    assert len(seen) == len(ROWS)


def test_spark_is_told_the_scheme_that_hadoop_has_a_client_for() -> None:
    """``make store-proof`` reads such a lake by Spark."""
    assert as_hadoop_says("s3://bucket/s3://lake/events/stock") == "s3a://bucket/s3://lake/events/stock"
    assert as_hadoop_says("/data/lake/events/stock") == "/data/lake/events/stock"


def test_trino_is_told_the_folder_and_the_flat_view_in_its_own_words(
    orders: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["views", "trino"]) == 0
    schema, table, view = capsys.readouterr().out.removesuffix(";\n").split(";\n")
    assert schema == 'CREATE SCHEMA IF NOT EXISTS "matches"'
    folder = f"local://{orders.lake}/matches/order"
    assert table == f"CALL system.register_table('matches', 'order', '{folder}')"
    assert view.startswith('CREATE OR REPLACE VIEW "matches"."order_flat" AS SELECT m."match_id", ')
    assert view.endswith(' FROM "matches"."order" AS m')
    assert ', (m."a")."price" AS "a_price", cardinality(m."b") AS "b_count", ' in view
    assert ', (element_at(m."b", -1))."price" AS "b_last_price"' in view


def test_a_schema_that_does_not_exist_and_a_lake_without_tables(
    orders: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["views", "spark", "match"]) == 2
    assert "there is no schema match\n" in capsys.readouterr().err.replace(".", "\n")
    assert main(["views", "spark", "events"]) == 2
    assert "has no table in events yet" in capsys.readouterr().err
