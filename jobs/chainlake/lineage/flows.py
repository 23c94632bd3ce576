"""Which tables each definition reads and writes, and which column comes from which, judged by definitions alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from chainlake.catalog.models import LoadedModel
from chainlake.catalog.patterns import CompiledPattern
from chainlake.definitions.source import Source
from chainlake.model_change.days.definitions import result_table
from chainlake.schemas.events import events_table
from chainlake.schemas.matches import FIXED_COLUMNS
from chainlake.schemas.models import METRICS
from chainlake.schemas.quarantine import quarantine_table
from chainlake.schemas.raw import raw_table
from chainlake.schemas.table import Table

#: Columns of a match that depend on all its events → the events' column.
_OF_ALL = {name: "event_id" if name == "match_id" else "ts" for name in FIXED_COLUMNS}


@dataclass(frozen=True)
class Flow:
    """What one definition, or the ingest of a source, reads and writes.

    Args:
        job: name of the job, such as ``detect.shakeout``.
        description: description of the definition.
        reads: tables that it reads.
        writes: tables that it writes.
        columns: column of the first table written → columns of the first table read.
        asked: columns of the first table read on which every row depends, since conditions use them.
    """

    job: str
    description: str
    reads: tuple[Table, ...]
    writes: tuple[Table, ...]
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    asked: tuple[str, ...] = ()


def of_ingest(source: Source) -> Flow:
    """The flow from a source's landing files to its events; it reads no tables, since files are not tables."""
    tables = (events_table(source), raw_table(source), quarantine_table(source))
    return Flow(f"ingest.{source.name}", source.description, (), tables)


def of_pattern(compiled: CompiledPattern, source: Source) -> dict[str, Flow]:
    """The flows of a pattern and of its episodes or ranking, by the names of their definitions in ``ops``."""
    pattern, events = compiled.pattern, events_table(source)
    here = set(events.column_names)
    columns: dict[str, tuple[str, ...]] = {name: (column,) for name, column in _OF_ALL.items()}
    for column in compiled.table.columns:
        fields = _fields(column.type)
        if fields:
            columns[column.name] = tuple(name for name in fields if name in here)
    asked = tuple(sorted(pattern.columns_needed & here))
    job, description = f"detect.{pattern.name}", pattern.description
    flows = {compiled.definition.name: Flow(job, description, (events,), (compiled.table,), columns, asked)}
    for kind, derived in (("episodes", compiled.episodes), ("ranked", compiled.ranking)):
        if derived is not None:
            name = derived.definition.name
            flows[name] = Flow(f"{kind}.{pattern.name}", description, (compiled.table,), (derived.table,))
    return flows


def of_model(model: LoadedModel) -> dict[str, Flow]:
    """The flow of a model, by the name of its definition in ``ops``."""
    config, events = model.config, events_table(model.source)
    writes = (result_table(config), METRICS)
    return {model.definition.name: Flow(f"monitor.{config.name}", config.description, (events,), writes)}


def _fields(kind: pa.DataType) -> list[str]:
    """The fields of a struct, or of a list of structs; none of any other type."""
    if pa.types.is_list(kind):
        kind = kind.value_type
    return [kind.field(i).name for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []
