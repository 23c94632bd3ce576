"""Real files as publishers deliver them: a source definition for each, and counts that were taken by other means.

The counts were verified once with Python's csv, json and zoneinfo modules. Files that do not travel with the repository
are read where they lie, if they are there.
"""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow.compute as pc
import pytest

from chainlake.definitions.source import load_source
from chainlake.ingest.events.local import in_order, resolve_local
from chainlake.ingest.landing.discovery import look_into
from chainlake.ingest.rows.parse import read_file
from chainlake.ingest.rows.parsed import Task
from chainlake.paths import PROJECT
from tests.ingest.test_parse import MESSY

SHARED = PROJECT.parent / "shared" / "data" / "messy"


class Read:
    """Files through the parser and the rules of identity."""

    def __init__(self, folder: Path, yaml: str, *names: str) -> None:
        config = folder / "x.yaml"
        config.write_text(yaml)
        source = load_source(config)
        files = [MESSY / name if (MESSY / name).exists() else SHARED / name for name in names]
        if not all(file.exists() for file in files):
            pytest.skip("the file does not travel with the repository")
        landed = in_order([one for file in files for one in look_into(source, file, file.name)])
        tables = []
        self.bad: list[tuple] = []
        for one in landed:
            task = Task.of(one, one.path)
            whole = read_file(source, task)
            self.bad += zip(*(whole.bad[name].to_pylist() for name in ("line", "reason", "value")), strict=True)
            tables.append(whole.rows)
        self.rows = sum(len(table) for table in tables)
        resolved = resolve_local(source, landed, tables)
        self.events = resolved.events
        self.left_out = (resolved.duplicates, resolved.conflicts, resolved.superseded)

    def all_events(self, rows: int) -> None:
        """There are so many rows, and each is an event."""
        assert (self.rows, self.bad, self.left_out) == (rows, [], (0, 0, 0))

    def total(self, column: str) -> float:
        return pc.sum(self.events[column]).as_py()

    def missing(self, column: str) -> int:
        return self.events[column].null_count

    def span(self) -> tuple[str, str]:
        found = pc.min_max(self.events["ts"])
        return tuple(found[name].as_py().strftime("%Y-%m-%d %H:%M") for name in ("min", "max"))  # type: ignore[return-value]


def test_bicycle_counters_semicolons_latin1_and_wide_rows(tmp_path):
    yaml = """\
key: counter
type: Count
zone: America/Montreal
attributes: {riders: {type: long}}
formats:
  - encoding: latin-1
    delimiter: ';'
    time: {column: Date, format: '%d/%m/%Y'}
    short_rows: fill
    unpivot:
      columns: [Berri 1, 'Brébeuf (données non disponibles)', Côte-Sainte-Catherine, Maisonneuve 1, Maisonneuve 2,
        du Parc, Pierre-Dupuy, Rachel1, 'St-Urbain (données non disponibles)']
      into: riders
"""
    found = Read(tmp_path, yaml, "montreal_bikes_2012_latin1.csv")
    found.all_events(2170)
    # Most rows lack the last cell, which is blank in the others. Seven of the nine counters have a value on each day.
    assert len(set(found.events["counter"].to_pylist())) == 7 and found.total("riders") == 4_805_856
    assert found.span() == ("2012-01-01 05:00", "2012-11-05 05:00")


def test_interstate_volume_with_days_first_and_one_row_per_weather(tmp_path):
    yaml = """\
key: road
type: Hour
zone: America/Chicago
attributes:
  volume: {type: long, required: true}
  temp: {type: double}
  rain: {type: double}
  holiday: {type: string}
  weather: {type: string}
formats:
  - time: {column: date_time, format: '%d/%m/%Y %H:%M'}
    map:
      road: {constant: I-94}
      volume: traffic_volume
      temp: {sentinels: [0], offset: -273.15, round: 2}
      rain: {column: rain_1h, sentinels: [9831.3]}
      weather: weather_description
"""
    found = Read(tmp_path, yaml, "Metro_Interstate_Traffic_Volume.csv.gz")
    assert (found.rows, found.bad) == (48_204, [])
    # One row for each weather of an hour: of the 40,575 times the first row is taken, 17 rows say the same again.
    # In the double hours of 2012 (275.6 and 275.77 K), 2016 (283.48 and 282.87 K) and 2017 (drizzle and mist, then
    # both again and rain) both passes are there: of two of them the second was another row, of one the same.
    assert (len(found.events), *found.left_out) == (40_575 + 3, 17 - 1, 7_612 - 2, 0)
    assert found.span() == ("2012-10-02 14:00", "2018-10-01 04:00")


def test_bridge_counter_with_a_double_hour_where_the_gap_is(tmp_path):
    yaml = """\
key: side
type: Count
zone: America/Los_Angeles
attributes: {riders: {type: long}}
formats:
  - time: {column: Date, format: '%m/%d/%Y %I:%M:%S %p'}
    unpivot: {columns: {Fremont Bridge NB: NB, Fremont Bridge SB: SB}, into: riders}
"""
    found = Read(tmp_path, yaml, "seattle_FremontHourly.csv")
    # 14,568 hours of two sides, 22 of them blank. On both days without a 02:00 the hour of 03:00 comes twice: in 2013
    # with other counts of both sides, in 2014 blank the first time.
    assert (found.rows, found.bad, found.left_out) == (2 * (14_568 - 22), [], (0, 2, 0))
    assert found.span() == ("2012-10-02 07:00", "2014-06-01 06:00")


def test_daily_weather_in_tenths_with_a_sentinel(tmp_path):
    yaml = """\
key: station
type: Day
zone: America/Los_Angeles
attributes: {tmax: {type: double}, tmin: {type: double}, wind: {type: double}}
formats:
  - time: {column: DATE, format: '%Y%m%d'}
    map:
      station: STATION
      tmax: {column: TMAX, sentinels: [-9999], scale: 0.1, round: 1}
      tmin: {column: TMIN, sentinels: [-9999], scale: 0.1, round: 1}
      wind: {column: AWND, sentinels: [-9999], scale: 0.1, round: 1}
"""
    found = Read(tmp_path, yaml, "seattle_SeaTacWeather.csv")
    found.all_events(609)
    assert math.isclose(found.total("tmax"), 8_945.6) and (found.missing("tmax"), found.missing("wind")) == (0, 2)


def test_occupancy_with_a_header_that_lacks_a_name(tmp_path):
    yaml = """\
key: room
type: Minute
zone: Europe/Brussels
attributes: {co2: {type: double}, occupied: {type: boolean}}
path: 'data(?P<room>[a-z]+)'
formats:
  - skip_lines: 1
    columns: [number, date, temperature, humidity, light, co2, ratio, occupied]
    time: {column: date}
    map: {room: {path: room}}
"""
    found = Read(tmp_path, yaml, "occupancy/datatraining.txt", "occupancy/datatest.txt")
    found.all_events(8143 + 2665)
    assert found.total("occupied") == 1729 + 972
    assert found.span() == ("2015-02-02 13:19", "2015-02-10 08:33")


@pytest.mark.parametrize(
    ("name", "blank", "total"), [("hum", 1, 305_280), ("tempm", 1, 67_912), ("wdird", 40, 799_840)]
)
def test_weather_as_json_maps_and_as_csv(tmp_path, name, blank, total):
    yaml = """\
key: station
type: Reading
zone: Europe/Copenhagen
attributes: {value: {type: double}}
formats:
  - glob: '*.txt'
    kind: json_map
    map: {station: {constant: Aarhus}, value: value}
  - header: [TIMESTAMP, NAME]
    time: {column: TIMESTAMP}
    map: {station: {constant: Aarhus}, value: NAME}
""".replace("NAME", name)
    text = Read(tmp_path, yaml, f"aarhus_weather/{name}.txt")
    text.all_events(4357)
    assert (text.missing("value"), text.total("value")) == (blank, total)
    both = Read(tmp_path, yaml, f"aarhus_weather/{name}.csv", f"aarhus_weather/{name}.txt")
    # The csv file says the same: every row of it is a duplicate.
    assert (both.rows, both.bad, both.left_out) == (2 * 4357, [], (4357, 0, 0))


def test_leftover_file_with_another_header_and_a_word_for_a_number(tmp_path):
    yaml = """\
key: station
type: Reading
zone: Europe/Copenhagen
attributes: {value: {type: double}}
formats:
  - header: [TIMESTAMP, dewptm]
    time: {column: TIMESTAMP}
    map: {station: {constant: Aarhus}, value: dewptm}
"""
    strict = Read(tmp_path, yaml, "aarhus_weather/dewptm.csv")
    assert (strict.rows, [bad[:2] for bad in strict.bad]) == (0, [(0, "no_format")])
    found = Read(tmp_path, yaml.replace("dewptm", "avgSpeed"), "aarhus_weather/dewptm.csv")
    assert (found.rows, found.bad, found.left_out) == (2, [(2, "not_a_number", "dfg")], (0, 1, 0))


def test_loop_detector_with_offsets_and_speeds_that_are_none(tmp_path):
    yaml = """\
key: detector
type: Reading
attributes: {volume: {type: double}, speed: {type: double}}
formats:
  - time: {column: starttime}
    map:
      detector: detectorid
      speed: {sentinels: [{value: 0, when: {volume: 0}}, {value: 0, when: {volume: '> 0'}}]}
"""
    found = Read(tmp_path, yaml, "portland_loopdata1000.csv")
    found.all_events(1000)
    # Blank in 628 rows, 0 in 8.
    assert (found.missing("volume"), found.missing("speed")) == (1, 636)
    assert found.span() == ("2011-09-15 07:00", "2011-09-15 17:12")


def test_daily_bars_with_a_byte_order_mark_and_no_last_line_end(tmp_path):
    yaml = """\
key: ticker
type: Day
zone: America/New_York
attributes: {close: {type: double, required: true}, logr14: {type: double}}
formats:
  - time: {column: Date, format: '%m/%d/%Y %I:%M:%S %p'}
    map: {ticker: {constant: SPY}, close: Close, logr14: LOGR14}
"""
    found = Read(tmp_path, yaml, "lean_spy_logr14_bom.txt")
    found.all_events(500)
    assert found.missing("logr14") == 14
    assert math.isclose(found.total("close"), 97_499.3364)
    assert found.span() == ("2013-08-30 04:00", "2015-08-25 04:00")


@pytest.mark.parametrize(("date_of", "days"), [(r"lean_nifty50_(?P<date>\d{8})", 1), (r"(?P<date>\d{8})_nifty", 2)])
def test_archive_that_holds_a_day_twice(tmp_path, date_of, days):
    """Once where the archive's name gives the date; twice, on two days, where the members' names do."""
    yaml = """\
key: ticker
type: Bar
zone: Asia/Kolkata
attributes: {close: {type: double}}
path: 'DATE'
formats:
  - columns: [ms, open, high, low, close, volume]
    time: {column: ms, format: ms_of_day}
    map: {ticker: {constant: NIFTY50}}
""".replace("DATE", date_of)
    found = Read(tmp_path, yaml, "lean_nifty50_20190101_trade_two_members.zip")
    found.all_events(378 * days)
    assert len(set(day.date() for day in found.events["ts"].to_pylist())) == days
