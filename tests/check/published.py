"""Whether the tables of results hold what was published, as ``chainlake check`` asks it; not the rest of the lake."""

from __future__ import annotations

from chainlake.lake.sql.scan import list_tables
from chainlake.lake.upkeep import recorded
from chainlake.lake.upkeep.check_published import check_matches, check_models
from chainlake.lake.upkeep.check_table import inspect_table
from chainlake.paths import Home
from chainlake.schemas.models import SHARED


def published_damage(home: Home) -> list[str]:
    """A line for everything in the tables of matches and models that is not as it was published."""
    found = []
    for name in list_tables(home, "matches"):
        inspected = inspect_table(home, "matches", name)
        found += [*inspected.findings, *check_matches(inspected, recorded.recorded_of(home, "matches", name), None)]
    models = {table.path_name: inspect_table(home, table.schema, table.name) for table in SHARED}
    for inspected in models.values():
        found += inspected.findings
    found += check_models(models, recorded.recorded_days(home), None)
    return [str(one) for one in found if one.damage]
