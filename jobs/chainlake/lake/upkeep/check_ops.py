"""Whether the logs of ``ops`` are complete: a key's rows are numbered 1, 2, 3 …, each number once."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.lake.upkeep.check_table import Inspected
from chainlake.lake.upkeep.findings import Finding, OpsLog
from chainlake.paths import Home
from chainlake.schemas.ops import ALL
from chainlake.storage.resolve import storage_of
from chainlake.words import counted


def unlogged(home: Home) -> list[str]:
    """The tables of ``ops`` whose Delta log is gone although they still have data files."""
    found = []
    for name in ALL:
        folder = home.table("ops", name)
        files = storage_of(folder)
        if not files.names(f"{folder}/_delta_log") and any(one.endswith(".parquet") for one in files.names(folder)):
            found.append(name)
    return found


def check_ops(inspected: Inspected) -> list[Finding]:
    """Read a log and look for keys whose numbers are not 1, 2, 3 …

    Args:
        inspected: a table of ``ops``.
    """
    if inspected.contents is None or inspected.name not in ALL:
        return []
    key = list(ALL[inspected.name].key)
    batches = list(inspected.contents.batches(columns=list(inspected.contents.schema.names)))
    if not batches:
        return []
    rows = pa.Table.from_batches(batches).select([*key, "seq"])
    found = rows.group_by(key).aggregate([("seq", "count"), ("seq", "max"), ("seq", "min"), ("seq", "count_distinct")])
    whole = pc.and_(pc.equal(found["seq_max"], found["seq_count"]), pc.equal(found["seq_min"], 1))
    whole = pc.and_(whole, pc.equal(found["seq_count_distinct"], found["seq_count"]))
    broken = found.filter(pc.invert(whole))
    if not len(broken):
        return []
    example = ", ".join(str(broken[name][0].as_py()) for name in key)
    what = f"rows are missing or repeated: the numbers of {counted(len(broken), 'key')} have gaps, such as {example}"
    return [Finding(inspected.path_name, what, fixes=(OpsLog(inspected.name),))]
