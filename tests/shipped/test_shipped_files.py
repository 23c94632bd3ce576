"""The shipped landing files: what data/README.md says of them, and the parser reads them as plain pandas does."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml

from chainlake.days import day_of_us
from chainlake.definitions.source import load_source
from chainlake.ingest.path_fields import path_fields
from chainlake.ingest.rows.parse import read_file
from chainlake.ingest.rows.parsed import Task
from chainlake.paths import PROJECT
from tests.shipped.shipped_data import DATA, SOURCES, shipped


def plan() -> dict[str, list[dict]]:
    """Landing plan: source to its days."""
    return {name: told["days"] for name, told in yaml.safe_load((DATA / "days.yaml").read_text())["sources"].items()}


def test_the_folder_is_small() -> None:
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) < 3_000_000


def test_the_plan_lands_every_file_once_and_names_every_day_with_events() -> None:
    assert list(plan()) == list(SOURCES)
    for source, days in plan().items():
        landed = [name for day in days for name in day["land"]]
        assert sorted(landed) == sorted(str(path.relative_to(DATA)) for path in (DATA / source).iterdir())
        named = [day["day"] for day in days]
        assert named == sorted({day_of_us(int(ts)) for ts in shipped(source)["ts"]})
        for day in days:
            for name in day["land"]:
                _, file_date, _, problem = path_fields(load_source(source_file(source)), Path(name).name)
                assert (file_date, problem) == (day["day"], "")


@pytest.mark.parametrize("source", SOURCES)
def test_one_event_per_key_and_time_and_no_blank_cell(source: str) -> None:
    rows = shipped(source)
    assert not rows["id"].duplicated().any()
    assert not rows.isna().any().any()


def test_nothing_in_the_traffic_files_was_filled_in_by_pems() -> None:
    rows = shipped("traffic")
    assert (rows["pct_observed"] == 100).all()
    assert rows.groupby("detector").size().tolist() == [864] * 15
    assert rows.groupby("detector")["position"].nunique().max() == 1
    assert np.diff(np.sort(rows["position"].unique())).max() < 1.5


@pytest.mark.parametrize("source", SOURCES)
def test_parser_reads_what_pandas_reads(source: str) -> None:
    definition = load_source(source_file(source))
    key = SOURCES[source][0]
    rows: list[pa.Table] = []
    for path in sorted((DATA / source).iterdir()):
        task = Task(path.name, str(path), None, "f", "l", {}, date(2000, 1, 1), "")
        whole = read_file(definition, task)
        assert not len(whole.bad)
        rows.append(whole.rows)
    parsed = pa.concat_tables(rows).to_pandas().sort_values(["ts", key], kind="stable", ignore_index=True)
    expected = shipped(source)
    times = parsed["ts"].dt.tz_localize(None).astype("datetime64[us]").astype("int64")
    assert times.tolist() == expected["ts"].tolist()
    for column in (key, *(name for name in expected.columns if name not in ("id", "ts", key))):
        ours = parsed[column] if pd.api.types.is_numeric_dtype(parsed[column]) else parsed[column].astype(str)
        assert ours.tolist() == expected[column].tolist(), column


def source_file(source: str) -> Path:
    """The YAML file of a source."""
    return PROJECT / "dags" / "config" / "sources" / f"{source}.yaml"
