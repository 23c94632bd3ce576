"""The shipped landing files read without the product: plain pandas, so that a test can disagree with the product."""

from __future__ import annotations

import functools
from pathlib import Path

import pandas as pd

DATA = Path(__file__).resolve().parents[2] / "data"
US_PER_DAY = 86_400_000_000

#: Source: key column, type, zone, time format, and what the events call the columns of the files.
SOURCES: dict[str, tuple[str, str, str, str, dict[str, str]]] = {
    "stock": (
        "ticker",
        "Bar",
        "America/New_York",
        "%Y-%m-%d %H:%M:%S",
        {"ts": "local", "ticker": "ticker"} | {name: name for name in ("open", "high", "low", "close", "volume")},
    ),
    "traffic": (
        "detector",
        "Reading",
        "America/Los_Angeles",
        "%m/%d/%Y %H:%M:%S",
        {
            "Timestamp": "local",
            "Station": "detector",
            "AbsPM": "position",
            "TotalFlow": "flow",
            "AvgOccupancy": "occupancy",
            "AvgSpeed": "speed",
            "PctObserved": "pct_observed",
        },
    ),
    "sensor": (
        "channel",
        "Reading",
        "America/Los_Angeles",
        "%Y-%m-%dT%H:%M:%S",
        {"time": "local", "channel": "channel", "value": "value"},
    ),
}


def read(source: str, folder: Path) -> pd.DataFrame:
    """All rows of a source's landing files in a folder, in time order, whatever their quality.

    Columns: `id` (text, `key@microseconds`), `type`, `ts` (microseconds since the epoch, UTC), the key, the attributes.
    """
    key, kind, zone, time_format, columns = SOURCES[source]
    files = sorted(folder.glob("*.csv.gz"))
    # pandas' default way to read numbers can miss the nearest double by one unit in the last place.
    read_file = functools.partial(pd.read_csv, dtype={"Station": str}, float_precision="round_trip")
    rows = pd.concat([read_file(path) for path in files], ignore_index=True)
    rows = rows[list(columns)].rename(columns=columns)
    local = pd.to_datetime(rows.pop("local"), format=time_format)
    utc = local.dt.tz_localize(zone).dt.tz_convert("UTC").dt.tz_localize(None)
    rows["ts"] = utc.astype("datetime64[us]").astype("int64")
    rows["type"] = kind
    rows["id"] = rows[key] + "@" + rows["ts"].astype(str)
    return rows.sort_values(["ts", key], kind="stable", ignore_index=True)


@functools.cache
def shipped(source: str) -> pd.DataFrame:
    """All events of a shipped source."""
    return read(source, DATA / source)


def by_key(rows: pd.DataFrame, source: str) -> dict[str, list[dict]]:
    """Events as one time-ordered list of dictionaries per key."""
    key = SOURCES[source][0]
    lists: dict[str, list[dict]] = {}
    for row in rows.to_dict("records"):
        lists.setdefault(row[key], []).append(row)
    return lists
