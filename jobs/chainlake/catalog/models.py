"""The model files of an installation, checked against their sources; monitor, status and the DAGs start from these.

An error in one file never hides another file: errors are collected, and each is raised when its file is needed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from chainlake.catalog.errors import UnfitModel
from chainlake.days import Days
from chainlake.definitions.files import BrokenDefinition, check_name, read_definition, source_line, source_named
from chainlake.definitions.source import Source, Sources, source_for
from chainlake.definitions.yaml_lines import load_section
from chainlake.errors import DefinitionError
from chainlake.lake.records.defined.definitions import Definition
from chainlake.model_change.config.expressions import check_against, expression_of
from chainlake.model_change.config.reading import Settings
from chainlake.model_change.days.definitions import Config, load_definition, result_table
from chainlake.model_change.versions import ENGINE_VERSION
from chainlake.paths import Home


@dataclass(frozen=True)
class LoadedModel:
    """A model or monitor and its place in the schedule of days."""

    config: Config
    source: Source
    definition: Definition


def load_models(
    home: Home, sources: Sources, *, only: Collection[str] | None = None
) -> tuple[list[LoadedModel], list[BrokenDefinition]]:
    """Check every model file against the source it names.

    Args:
        home: the installation, which has the configuration.
        sources: all sources.
        only: check only the models with these names.
    """
    loaded: list[LoadedModel] = []
    broken: list[BrokenDefinition] = []
    for file in sorted((home.config / "models").glob("*.yaml")):
        if only is not None and file.stem not in only:
            continue
        try:
            loaded.append(load_one(file, sources))
        except DefinitionError as error:
            broken.append(BrokenDefinition(file.stem, file, source_named(file), error))
    return loaded, broken


def load_one(file: Path, sources: Sources) -> LoadedModel:
    """Load one model file, checked against the source it names.

    Raises:
        DefinitionError: the file or its source is wrong, or the source lacks a column.
    """
    check_name(file, "model")
    config = load_definition(file)
    source = source_for(sources, config.source, file, source_line(read_definition(file)))
    numbers = sorted(name for name, kind in source.event_columns().items() if _is_number(kind))
    response, features = config.COLUMN_KEYS
    if config.has_expressions:
        check_against(Settings.read(file), source.event_columns(), [history.name for history in source.derived])
    wanted = [(config.response.of, response), *((f.of, features) for f in config.features)]
    for name, key in (*wanted, (config.missing_if_zero, "missing_if_zero")):
        if name is not None and expression_of(name) is None and name not in numbers:
            raise load_section(file).placed(UnfitModel.no_column(source.name, name, numbers), key)
    definition = Definition(
        name=f"model/{config.name}",
        source=source.name,
        definition_hash=config.definition_hash,
        engine_version=ENGINE_VERSION,
        table_name=result_table(config).path_name,
        late_us=0,
        read_range=lambda day: Days.one(day).micros(),
        start=config.start,
    )
    return LoadedModel(config, source, definition)


def _is_number(kind: pa.DataType) -> bool:
    result: bool = pa.types.is_floating(kind) or pa.types.is_integer(kind)
    return result
