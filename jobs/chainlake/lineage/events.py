"""The events of a run in OpenLineage's terms: a start and an end for each definition that it computed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlparse

import pyarrow as pa
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.generated.base import DatasetFacet, OutputDatasetFacet, RunFacet
from openlineage.client.generated.column_lineage_dataset import (
    ColumnLineageDatasetFacet,
    Fields,
    InputField,
    Transformation,
)
from openlineage.client.generated.documentation_dataset import DocumentationDatasetFacet
from openlineage.client.generated.documentation_job import DocumentationJobFacet
from openlineage.client.generated.error_message_run import ErrorMessageRunFacet
from openlineage.client.generated.job_type_job import JobTypeJobFacet
from openlineage.client.generated.nominal_time_run import NominalTimeRunFacet
from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet
from openlineage.client.generated.processing_engine_run import ProcessingEngineRunFacet
from openlineage.client.generated.schema_dataset import SchemaDatasetFacet, SchemaDatasetFacetFields

from chainlake.lineage.flows import Flow
from chainlake.paths import Home
from chainlake.schemas.ops_rows import RunRow
from chainlake.schemas.table import Table, comment_of

#: The namespace of our jobs.
NAMESPACE = "chainlake"
PRODUCER = "urn:chainlake"
_FAILED = "failed"


def run_events(home: Home, run_id: str, rows: Iterable[RunRow], flows: Mapping[str, Flow]) -> list[RunEvent]:
    """The events of a run that has ended.

    Args:
        home: the installation with the tables.
        run_id: id of the run in ``ops``.
        rows: its rows in ``ops.runs``, one per phase and definition.
        flows: the flows to report, by the name of the definition in ``ops``; an ingest has the empty name.

    Returns:
        a start and an end for each definition for which some phase of the run did something, in time order.
    """
    finished = [row for row in rows if row["status"] != "nothing"]
    events: list[RunEvent] = []
    for name, flow in flows.items():
        phases = sorted((row for row in finished if row["definition"] == name), key=_started)
        if phases:
            events += _of_definition(home, f"{run_id}/{name}", flow, phases)
    return sorted(events, key=lambda event: (event.eventTime, event.eventType != RunState.START))


def _of_definition(home: Home, identity: str, flow: Flow, phases: Sequence[RunRow]) -> list[RunEvent]:
    failed = [row for row in phases if row["status"] == _FAILED]
    published = [row for row in phases if row["phase"] == "publish"]
    number = sum(row["rows_out"] or 0 for row in published) if published else None
    run = Run(str(uuid.uuid5(uuid.NAMESPACE_URL, f"chainlake:{identity}")), _facets(phases, failed))
    job = Job(
        NAMESPACE,
        flow.job,
        {
            "documentation": DocumentationJobFacet(flow.description),
            "jobType": JobTypeJobFacet(processingType="BATCH", integration="CHAINLAKE", jobType="JOB"),
        },
    )
    inputs = [InputDataset(*_place(home, table), facets=_described(table)) for table in flow.reads]
    outputs = [_written(home, flow, table, number if i == 0 else None) for i, table in enumerate(flow.writes)]
    ended = RunState.FAIL if failed else RunState.COMPLETE
    moments = (_started(phases[0]), RunState.START), (max(map(_ended, phases)), ended)
    return [
        RunEvent(
            eventTime=_iso(moment), eventType=state, run=run, job=job, inputs=inputs, outputs=outputs, producer=PRODUCER
        )
        for moment, state in moments
    ]


def _facets(phases: Sequence[RunRow], failed: Sequence[RunRow]) -> dict[str, RunFacet]:
    facets: dict[str, RunFacet] = {
        "processing_engine": ProcessingEngineRunFacet(version=phases[0]["code_version"] or "unknown", name="Chainlake")
    }
    days = [(row["day_from"], row["day_to"]) for row in phases if row["day_from"] and row["day_to"]]
    if days:
        first, last = min(day for day, _ in days), max(day for _, day in days)
        facets["nominalTime"] = NominalTimeRunFacet(f"{first}T00:00:00Z", f"{last}T00:00:00Z")
    if failed:
        facets["errorMessage"] = ErrorMessageRunFacet(failed[-1]["reason"] or "failed", "PYTHON")
    return facets


def _written(home: Home, flow: Flow, table: Table, number: int | None) -> OutputDataset:
    facets = _described(table)
    if flow.reads and table is flow.writes[0] and (flow.columns or flow.asked):
        place = _place(home, flow.reads[0])
        facets["columnLineage"] = ColumnLineageDatasetFacet(
            fields={
                column: Fields([InputField(*place, name, [Transformation("DIRECT", "IDENTITY")]) for name in names])
                for column, names in flow.columns.items()
            },
            dataset=[InputField(*place, name, [Transformation("INDIRECT", "FILTER")]) for name in flow.asked],
        )
    counted: dict[str, OutputDatasetFacet] = {}
    if number is not None:
        counted["outputStatistics"] = OutputStatisticsOutputDatasetFacet(rowCount=number)
    return OutputDataset(*_place(home, table), facets=facets, outputFacets=counted)


def _described(table: Table) -> dict[str, DatasetFacet]:
    """The columns of a table with types and meanings, and what its rows are."""
    fields = [SchemaDatasetFacetFields(c.name, str(c.type), c.comment, fields=_inside(c.type)) for c in table.columns]
    return {"schema": SchemaDatasetFacet(fields), "documentation": DocumentationDatasetFacet(table.comment)}


def _inside(kind: pa.DataType) -> list[SchemaDatasetFacetFields]:
    if pa.types.is_list(kind):
        kind = kind.value_type
    if not pa.types.is_struct(kind):
        return []
    inner = (kind.field(i) for i in range(kind.num_fields))
    return [SchemaDatasetFacetFields(f.name, str(f.type), comment_of(f), fields=_inside(f.type)) for f in inner]


def _place(home: Home, table: Table) -> tuple[str, str]:
    """Namespace and name of a table by OpenLineage's rules for files: the store, and the path in it."""
    path = home.table(table.schema, table.name)
    url = urlparse(path)
    if url.netloc:
        return f"{url.scheme}://{url.netloc}", url.path.lstrip("/")
    return "file", str(Path(path))


def _started(row: RunRow) -> datetime:
    return row["started"] or datetime.min.replace(tzinfo=UTC)


def _ended(row: RunRow) -> datetime:
    return row["ended"] or _started(row)


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
