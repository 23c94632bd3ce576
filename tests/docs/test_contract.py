"""The data contract, held by the standard's own schema and by the tables that it describes."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest
import yaml

from chainlake.catalog.tables import defined_tables
from chainlake.cli.main import main
from chainlake.paths import Home


@pytest.fixture(scope="module")
def standard() -> dict[str, Any]:
    """The JSON schema of the standard, as its own package has it."""
    package = pytest.importorskip("open_data_contract_standard")
    text = (resources.files(package) / "schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


NAMES = ["events.stock", "matches.fall_not_recovered", "matches.shakeout", "models.changes", "ops.files"]


@pytest.mark.slow
def test_the_contract_fits_the_standard(
    home: Home, standard: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    import jsonschema

    assert main(["contract", *NAMES]) == 0
    document = yaml.safe_load(capsys.readouterr().out)
    jsonschema.Draft201909Validator(standard).validate(document)
    tables = {table["name"]: table for table in document["schema"]}
    assert list(tables) == NAMES
    events = {column["name"]: column for column in tables["events.stock"]["properties"]}
    assert events["event_id"]["primaryKey"] is True and events["event_id"]["required"] is True
    assert events["ts"]["logicalType"] == "timestamp" and events["line"]["tags"] == ["volatile"]
    assert events["event_date"]["partitioned"] is True
    down = next(column for column in tables["matches.shakeout"]["properties"] if column["name"] == "down")
    assert {"ticker", "ts", "close"} <= {field["name"] for field in down["properties"]}
    (close,) = (field for field in down["properties"] if field["name"] == "close")
    assert close["description"] == "Last price of the minute [USD]"
    # The schema can fail: a column without a name.
    del document["schema"][0]["properties"][0]["name"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft201909Validator(standard).validate(document)


def test_all_tables_some_and_an_unknown_one(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    names = {f"{table.schema}.{table.name}" for table in defined_tables(home)}
    assert {"events.stock", "quarantine.traffic", "matches.shakeout", "ranked.fastest_rises", "ops.runs"} <= names
    assert main(["contract", "matches.shakeout"]) == 0
    assert [table["name"] for table in yaml.safe_load(capsys.readouterr().out)["schema"]] == ["matches.shakeout"]
    assert main(["contract", "matches.shakeou"]) == 2
    assert "Did you mean matches.shakeout?" in capsys.readouterr().err
