"""Changes of a road's speed profile on real days, compared with the slow-downs that the speeds themselves show.

Usage: ``python -m benchmarks.monitor_road PEMS [--out FOLDER] [--eps 6]``, where PEMS holds five-minute Parquet files
of Caltrans PeMS (``d12_*.parquet``) and ``i5n_stations_derived.csv``. It prints Markdown tables; with --out it draws
the days with the most and the fewest changes.

A slow-down is defined without any model: for half an hour or more, at least two of the stations are below 40 mph and 20
mph below their own free speed (85th percentile), in medians of three readings; gaps of up to a quarter of an hour are
bridged. A change reports an onset or an end if it lies between 30 minutes before and 75 minutes after it, since the
window is an hour.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse  # noqa: E402
import sys  # noqa: E402
from dataclasses import dataclass, replace  # noqa: E402
from datetime import date, timedelta  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pyarrow as pa  # noqa: E402

from benchmarks import monitor_data as data  # noqa: E402
from chainlake.days import day_start_us  # noqa: E402
from chainlake.model_change.config.model import ModelConfig  # noqa: E402
from chainlake.model_change.days.definitions import load_definition, parse_definition  # noqa: E402
from chainlake.model_change.days.traces import GroupTrace, trace_group  # noqa: E402
from chainlake.model_change.rounds.reduce import reduce_rows  # noqa: E402
from chainlake.paths import PROJECT  # noqa: E402
from chainlake.pictures.model import draw_model, largest_changes, shown_by_trace  # noqa: E402

ZONE = "America/Los_Angeles"
#: Stations of the shipped road that measured at least 99.5 % of all readings on all 20 days, in the order of travel.
STATIONS = "1205262 1205303 1205320 1205330 1205375 1205341 1212001 1212115 1205432".split()
SLOW, BELOW, TOGETHER = 40.0, 20.0, 2
LEAST, HOLE = timedelta(minutes=30), timedelta(minutes=15)
BEFORE, AFTER = timedelta(minutes=30), timedelta(minutes=75)


@dataclass(frozen=True)
class SlowDown:
    """A slow-down from ``onset`` to ``end``, local time; ``stations``: the largest number at one time."""

    onset: pd.Timestamp
    end: pd.Timestamp
    stations: int


def read(folder: Path) -> pd.DataFrame:
    """Readings of the stations: station, local (with zone), position, speed, observed."""
    places = pd.read_csv(folder / "i5n_stations_derived.csv")
    position = dict(zip(places.station.astype(str), places.abs_pm, strict=True))
    rows = pd.concat([pd.read_parquet(file) for file in sorted(folder.glob("d12_*.parquet"))], ignore_index=True)
    rows = rows.assign(station=rows.Station.astype(str)).query("station in @STATIONS")
    return pd.DataFrame(
        {
            "station": rows.station,
            "local": rows.Timestamp.dt.tz_localize(ZONE),
            "position": rows.station.map(position),
            "speed": rows.AvgSpeed,
            "observed": rows.PctObserved,
        }
    ).sort_values(["local", "position"], ignore_index=True)


def slow_downs(rows: pd.DataFrame) -> list[SlowDown]:
    """The slow-downs that the speeds themselves show."""
    speed = rows.pivot(index="local", columns="station", values="speed")
    smooth = speed.rolling(3, center=True, min_periods=1).median()
    slow = ((smooth < SLOW) & (smooth < speed.quantile(0.85) - BELOW)).sum(axis=1)
    found: list[list[pd.Timestamp]] = []
    for at in slow.index[slow >= TOGETHER]:
        if found and at - found[-1][1] <= HOLE + timedelta(minutes=5):
            found[-1][1] = at
        else:
            found.append([at, at])
    return [SlowDown(a, b, int(slow[a:b].max())) for a, b in found if b - a + timedelta(minutes=5) >= LEAST]


def model(eps: float) -> ModelConfig:
    """The shipped road with these stations and both detectors."""
    shipped = load_definition(PROJECT / "dags" / "config" / "models" / "i5n_speed_profile.yaml")
    nodes = parse_definition(
        {"source": "s", "start": "2025-01-01", "nodes": list(STATIONS), "response": "speed", "features": ["position"],
         "round": {"length": "5 min"}, "window": {"sliding": 12}, "eps": 1}
    ).groups  # fmt: skip
    # The curve is scaled to the section of road that these stations cover.
    curve = replace(shipped.features[-1], low=104.751, high=109.631)
    features = (*shipped.features[:-1], curve)
    return replace(
        shipped, name="i5n_nine_stations", groups=nodes, features=features, min_nodes=7, detector="both", eps=eps
    )


def trace(config: ModelConfig, rows: pd.DataFrame) -> GroupTrace:
    """Run the model over all rows."""
    table = pa.table(
        {
            "ts": pa.array(rows.local.dt.tz_convert("UTC")).cast(pa.timestamp("us", "UTC")),
            "detector": pa.array(rows.station),
            "position": pa.array(rows.position),
            "speed": pa.array(rows.speed),
        }
    )
    first, last = (rows.local.dt.tz_convert("UTC").dt.date.agg(how) for how in ("min", "max"))
    reduced = reduce_rows(replace(config, start=first), table, "detector")
    return trace_group(config, "", reduced, first, last + timedelta(days=1))


def local(us: np.ndarray) -> pd.DatetimeIndex:
    """Microseconds as local times."""
    return pd.DatetimeIndex(pd.to_datetime(us, unit="us", utc=True)).tz_convert(ZONE)


def near(times: pd.DatetimeIndex, moment: pd.Timestamp) -> bool:
    """Whether one of the times reports the moment."""
    return bool(((times >= moment - BEFORE) & (times <= moment + AFTER)).any())


def moved(run: GroupTrace, at: int) -> float:
    """Largest difference in a station's hourly mean speed between a change and the reference before it, in mph."""
    before = [i for i, event in run.events if event.kind in ("init", "change") and i < at][-1]
    window = run.config.window

    def mean(row: int) -> np.ndarray:
        return np.mean(run.y[max(0, row - window + 1) : row + 1], axis=0)

    return float(np.max(np.abs(mean(at) - mean(before))))


def by_day(found: list[SlowDown], run: GroupTrace, days: list[date]) -> None:
    """Print the table of weekdays, and the changes that no slow-down explains."""
    rows = [at for at, _ in run.of_kind("change")]
    changes = local(run.ts[rows])
    outside = [
        not any(one.onset - BEFORE <= at <= one.end + AFTER for one in found) and at.date() in days for at in changes
    ]
    print("| day | slow-downs (local time, most stations at once) | onsets / ends detected | changes | outside |")
    print("|---|---|---|---|---|")
    sums = np.zeros(5, int)
    for day in days:
        mine = [one for one in found if one.onset.date() == day]
        of_day = [at.date() == day for at in changes]
        line = [
            len(mine),
            sum(near(changes, one.onset) for one in mine),
            sum(near(changes, one.end) for one in mine),
            sum(of_day),
            sum(a and b for a, b in zip(of_day, outside, strict=True)),
        ]
        text = ", ".join(f"{one.onset:%H:%M}-{one.end:%H:%M} ({one.stations})" for one in mine)
        hits = f"{line[1]}/{line[0]}, {line[2]}/{line[0]}"
        print(f"| {day:%a %d %b} | {text or 'none'} | {hits} | {line[3]} | {line[4]} |")
        sums += line
    print(f"| all | {sums[0]} slow-downs | {sums[1]}/{sums[0]}, {sums[2]}/{sums[0]} | {sums[3]} | {sums[4]} |\n")
    moments = local(run.ts[[at.date() in days for at in local(run.ts)]])
    chance = np.mean([near(changes, at) for at in moments])
    delays = [min((at - one.onset).total_seconds() / 60 for at in changes if at >= one.onset - BEFORE) for one in found
              if one.onset.date() in days and near(changes, one.onset)]  # fmt: skip
    sizes = [moved(run, row) for row, stray in zip(rows, outside, strict=True) if stray]
    print(
        f"a moment of a weekday taken at random is 'detected' with probability {chance:.2f}; "
        f"first change after an onset: {np.median(delays):.0f} minutes in the median ({min(delays):.0f} to "
        f"{max(delays):.0f}).\nChanges outside: the station that moved most moved by {np.median(sizes):.0f} mph in the "
        f"median, {min(sizes):.0f} at least; at {', '.join(_hours(changes, outside))}\n"
    )


def _hours(changes: pd.DatetimeIndex, outside: list[bool]) -> list[str]:
    """How many changes outside slow-downs lie in each hour of the day."""
    hours = pd.Series([at.hour for at, stray in zip(changes, outside, strict=True) if stray]).value_counts()
    return [f"{hour:02d}h: {count}" for hour, count in hours.sort_index().items()]


def alarms(config: ModelConfig, rows: pd.DataFrame) -> None:
    """Print synchronisations of the local detector, compared with changes that exceeded eps."""
    print("| eps (mph) | changes (exact) | syncs, residual | over eps | syncs, paper | over eps | messages, residual |")
    print("|---|---|---|---|---|---|---|")
    for eps in (4.0, 6.0, 8.0, 12.0):
        cells = []
        for constraint in ("residual", "paper"):
            run = trace(replace(config, eps=eps, constraint=constraint), rows)
            syncs = run.of_kind("sync")
            cells.append((len(syncs), sum(bool(event.exceeded) for _, event in syncs), run))
        (syncs, over, run), (paper, paper_over, _) = cells
        counted = run.counted
        up = float((run.reports + run.nodes * run.synced)[counted].sum() / run.nodes[counted].sum())
        print(f"| {eps:g} | {len(run.of_kind('change'))} | {syncs} | {over} | {paper} | {paper_over} | {up:.3f} |")


def main() -> int:
    """Print the report, and draw pictures if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pems", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--eps", type=float, default=6.0)
    args = parser.parse_args()
    rows = read(args.pems)
    config = model(args.eps)
    run = trace(config, rows)
    days = sorted({at.date() for at in rows.local if at.weekday() < 5})
    measured = 100 * float((rows.observed == 100).mean())
    print(f"{len(STATIONS)} stations, {len(rows)} readings ({measured:.1f} % measured in full), {len(days)} weekdays\n")
    changes = local(run.ts[[at for at, _ in run.of_kind("change")]])
    by_day(slow_downs(rows), run, days)
    alarms(config, rows)
    if args.out is not None:
        count = {day: sum(at.date() == day for at in changes) for day in days}
        for day in (max(count, key=count.__getitem__), min(count, key=count.__getitem__)):
            begin = pd.Timestamp(day, tz=ZONE).tz_convert("UTC")
            first = day_start_us(begin.date()) + begin.hour * 3_600_000_000
            end = first + 86_400_000_000
            cut = int(np.searchsorted(run.ts, end))
            part = replace(run, events=[(at, event) for at, event in run.events if at < cut])
            path = args.out / f"road_{day}.png"
            draw_model(part, shown_by_trace(part, first), first, end, largest_changes(part, first), path)
            print(f"\npicture {path}")
    print(f"\npeak memory {data.peak_mib():.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
