"""``models.zones``: the safe zones of every node over time, derived from ``models.zone_events``."""

from __future__ import annotations

NAME = "zones"

SELECT = """
WITH each AS (
  SELECT model, group_id, ts, kind, unnest(zones) AS zone FROM models.zone_events WHERE zones IS NOT NULL
)
SELECT model, group_id, zone.node AS node, ts AS valid_from,
  lead(ts) OVER (PARTITION BY model, group_id, zone.node ORDER BY ts, kind <> 'design') AS valid_to,
  kind, zone.coverage AS coverage, zone.levels AS levels
FROM each"""
#: Its columns and, left empty, their types, for the lists in error messages.
COLUMNS = tuple((name, "") for name in "model group_id node valid_from valid_to kind coverage levels".split())
