"""Which definition the rows of a day came from: SQL for the views ``<table>_origin`` (docs/replay.md).

After an edit, a day keeps its old rows until its new ones are committed, so the days of a table can come from different
definitions, but the rows of one day cannot. For each day, the last ``done`` row of ``ops.intervals`` says which
definition it was. Later rows (``failed``, ``audit_failed``) stand for attempts that published nothing. A later
``publishing`` row stands for one that may have been cut off after its commit; the next run of the day settles it.
"""

from __future__ import annotations

SUFFIX = "_origin"

#: Columns that the view adds, and where they come from.
_ADDED = (
    "definition_hash", "engine_version", "input_fingerprint", "published_version", "run_id AS published_by",
    "written_at AS published_at",
)  # fmt: skip


def origin_select(rows: str, definition: str, table_name: str | None, day: str, added: str = "day") -> str:
    """The SELECT of an origin view.

    Args:
        rows: the published table or view, as SQL.
        definition: SQL expression on ``m``, the rows, that gives the definition's name, such as ``pattern/NAME``.
        table_name: SQL literal of the table's name in ``ops.intervals``; None if a definition has only one table.
        day: SQL expression on ``m`` that gives the UTC day that owns the row.
        added: name of the column that shows the day; empty if the rows have one.
    """
    shown = f", {day} AS {added}" if added else ""
    where = "" if table_name is None else f" AND table_name = {table_name}"
    return f"""
WITH recorded AS (
  SELECT *, status = 'publishing' AND seq = max(seq) OVER (PARTITION BY definition, day) AS cut_off
  FROM ops.intervals WHERE status IN ('done', 'publishing'){where}
), done AS (
  SELECT definition, day, {", ".join(_ADDED)} FROM recorded WHERE status = 'done'
  QUALIFY row_number() OVER (PARTITION BY definition, day ORDER BY seq DESC) = 1
)
SELECT m.*{shown}, done.* EXCLUDE (definition, day),
  EXISTS (FROM recorded AS n WHERE n.cut_off AND n.definition = {definition} AND n.day = {day}) AS interrupted
FROM {rows} AS m LEFT JOIN done ON done.definition = {definition} AND done.day = {day}"""
