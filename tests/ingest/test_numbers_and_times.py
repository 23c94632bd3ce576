"""Numbers and times whose text says more, or other, than a double or a clock can: none is stored as something else."""

from __future__ import annotations

import itertools
import random
import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from chainlake.days import day_start_us
from chainlake.definitions.formats.time_formats import problem_of
from chainlake.ingest.rows import casts, lines
from chainlake.ingest.rows.casts import times
from chainlake.ingest.rows.zones import LocalTimes
from tests.ingest.test_hostile_files import HEAD, fate
from tests.ingest.test_parse import BARS, parsed

LIMIT = 2**53


def volumes(tmp_path, texts, rule="", yaml=BARS):
    """The volume of each text, or the reason against it."""
    yaml += f"    map: {{volume: {{{rule}}}}}\n" if rule else ""
    found = parsed(tmp_path, HEAD + "".join(f'2025-01-01,A,1,"{text}",\n' for text in texts), yaml)
    rows = {row["line"]: row["volume"] for row in found.rows} | {bad[0]: bad[1] for bad in found.bad}
    return [rows[at] for at in range(2, len(texts) + 2)]


def test_whole_numbers_are_what_their_text_says_or_go_to_quarantine(tmp_path):
    good = {
        "9007199254740992": LIMIT, "-9007199254740992": -LIMIT, "9007199254740991": LIMIT - 1, "0e5": 0, "-0.000": 0,
        "9007199254740991.000": LIMIT - 1, "9.007199254740992e15": LIMIT, "90071992547409910e-1": LIMIT - 1,
        "1.5e1": 15, "+7": 7, "1000000000000000000000e-20": 10, "0." + "0" * 400: 0, "1" + "0" * 30 + "e-30": 1,
    }  # fmt: skip
    bad = [
        "9007199254740993", "-9007199254740993", "9007199254740991.4", "9007199254740992.0000001", "1.0000000000000001",
        "9007199254740992.5", "9.007199254740993e15", "900719925474099.3e1", "1e-400", "0.5", "1e16",
        "18446744073709551615", "4503599627370496.25", "1e-999999999999999999999", "9" * 400, "0." + "0" * 400 + "1",
    ]  # fmt: skip
    assert volumes(tmp_path, list(good)) == list(good.values())
    reasons = ["not_a_whole_number"] * len(bad)
    # What no double is near to, or nearer to 0 than any.
    for at in (8, 13, 14, 15):
        reasons[at] = "not_a_number"
    assert volumes(tmp_path, bad) == reasons


def test_a_number_that_doubles_do_not_tell_from_zero_is_not_stored_as_zero(tmp_path):
    good = {"0": 0.0, "-0.0": 0.0, "0e7": 0.0, "0.000e-999": 0.0, "5e-324": 5e-324, "2.5e-310": 2.5e-310}
    bad = ["1e-400", "-1e-400", "0." + "0" * 400 + "1", "0.0001e-999", "1e400"]
    texts = [*good, *bad]
    found = parsed(tmp_path, HEAD + "".join(f"2025-01-01,A,{text},1,\n" for text in texts), BARS)
    assert [row["price"] for row in found.rows] == list(good.values())
    assert [reason for _, reason, *_ in found.bad] == ["not_a_number"] * len(bad)


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("scale: 1000", {"9007199254740.992": LIMIT, "2.5": 2500}, ["9007199254740.993", "9007199254740.9915"]),
        ("scale: 0.5", {"18014398509481984": LIMIT, "3e0": None}, ["9007199254740993", "18014398509481986", "3"]),
        ("offset: 1", {"9007199254740991": LIMIT, "-9007199254740993": -LIMIT}, ["9007199254740992"]),
        ("offset: 1", {"0": 1}, ["-9007199254740994"]),
        ("scale: 100", {"1.1": 110, "1.15": 115, "0.29": 29, "-2.01": -201}, ["1.111"]),
        ("scale: 0.016666666666666666", {"120": 2, "5400": 90}, ["119"]),
        ("scale: 1.609344, round: 0", {"62": 100, "1": 2}, ["5596840000000000"]),
        ("round: 0", {"2.5": 2, "3.5": 4, "9007199254740992.4": LIMIT}, ["9007199254740992.6"]),
    ],
)
def test_conversions_of_whole_numbers_are_exact(tmp_path, rule, good, bad):
    good = {text: number for text, number in good.items() if number is not None}
    assert volumes(tmp_path, [*good, *bad], rule) == [*good.values(), *["not_a_whole_number"] * len(bad)]


def test_random_whole_numbers_are_those_of_exact_arithmetic(tmp_path):
    pick = random.Random(5)
    texts = []
    for _ in range(3000):
        number = str(pick.choice((LIMIT, LIMIT // 2, LIMIT // 8, 10**15, 100)) + pick.randrange(-40, 40))
        cut = pick.randrange(len(number) + 1)
        fraction = pick.choice(("", "0", "000", "5", "25", "0000000001"))
        moved = f"{number[:cut]}.{number[cut:]}e{len(number) - cut}"
        texts.append(pick.choice((number, moved, f"{number}.{fraction}")))
    wanted = []
    for text in texts:
        exact = Fraction(text)
        wanted.append(int(exact) if exact.denominator == 1 and exact <= LIMIT else "not_a_whole_number")
    assert volumes(tmp_path, texts) == wanted
    assert 500 < wanted.count("not_a_whole_number") < 2500


def test_whole_numbers_in_json(tmp_path):
    yaml = BARS.replace("- time: {column: ts, format: iso}", "- kind: json_map\n    map: {ticker: {constant: S}}")
    yaml = yaml.replace("{constant: S}", "{constant: S}, volume: value")
    values = ["9007199254740993", "9007199254740992", '"9007199254740993"', "9007199254740991.4"]
    values += ["9.007199254740993e15", "1e1"]
    text = "{" + ", ".join(f'"2025-01-0{n + 1}": {value}' for n, value in enumerate(values)) + "}"
    found = parsed(tmp_path, text, yaml)
    assert found.values("entry", "volume") == [(1, LIMIT), (5, 10)]
    assert [bad[1] for bad in found.bad] == ["not_a_whole_number"] * 4


def test_a_conversion_that_leaves_the_doubles_is_no_number(tmp_path):
    text = HEAD + "2025-01-01,A,1e300,1,\n2025-01-02,A,1e10,1,\n"
    found = parsed(tmp_path, text, BARS + "    map: {price: {scale: 1.0e+20}}\n")
    assert fate(found) == {2: "out_of_range", 3: "row"}


@pytest.mark.parametrize(
    ("decimal", "thousands", "good", "bad"),
    [
        (".", ",", {"1,234": 1234, "12,345,678.5": 12345678.5, "999": 999, "1234.5": 1234.5, "-1,000": -1000},
         ["1,04", "1,2345", "1,23,456", ",123", "1,,234", "1234,567", "0,123", "1,234.5,6", "1,234,", "1.234,567"]),
        (",", ".", {"1.234": 1234, "1.234,5": 1234.5, "10,6": 10.6, "1234": 1234},
         ["10.6", "1.04", "1.2345", "1,234.5", "0.123", "1.234.56", "1.5e3"]),
        (",", None, {"10,6": 10.6}, ["10.6", "1.234", "1,2,3"]),
        (".", "'", {"1'234.5": 1234.5}, ["12'34", "1'2345"]),
        (".", " ", {"1 234 567": 1234567}, ["1 2", "1 23 456"]),
    ],
)  # fmt: skip
def test_separators_of_thousands_stand_before_three_digits(tmp_path, decimal, thousands, good, bad):
    yaml = BARS.replace(", min: 0", "") + f'    decimal: "{decimal}"\n    delimiter: ";"\n'
    yaml += f'    thousands: "{thousands}"\n' if thousands else ""
    text = HEAD.replace(",", ";") + "".join(f"2025-01-01;A;{number};1;\n" for number in [*good, *bad])
    found = parsed(tmp_path, text, yaml)
    assert [row["price"] for row in found.rows] == list(good.values())
    assert [bad[:4] for bad in found.bad] == [
        (at, "not_a_number", "price", number) for at, number in enumerate(bad, len(good) + 2)
    ]


@pytest.mark.parametrize("constant", ["1000", "0.5", "-.5", "1.", "1e-3", "+7", "1234.5"])
@pytest.mark.parametrize("signs", ["", '    decimal: ","\n    thousands: "."\n    delimiter: ";"\n'])
def test_a_constant_that_a_definition_takes_is_a_number_in_every_row(tmp_path, constant, signs):
    yaml = BARS.replace(", min: 0", "") + f"    map: {{price: {{constant: '{constant}'}}}}\n{signs}"
    text = HEAD + "2025-01-01,A,1,1,\n2025-01-02,A,1,1,\n"
    found = parsed(tmp_path, text.replace(",", ";") if signs else text, yaml)
    assert [row["price"] for row in found.rows] == [float(constant)] * 2 and not found.bad


def test_offsets_that_no_place_has(tmp_path):
    good = ["+14:00", "-12:00", "+0545", "-0930", "+15:59", "Z", "-00:00"]
    bad = ["+99:99", "+24:00", "-16:00", "+14:60", "+1400:00", "+9", "+05:3", "++05:00"]
    for form, stamp in (("iso", "2025-01-01T12:00:00"), ("'%Y-%m-%d %H:%M:%S%z'", "2025-01-01 12:00:00")):
        folder = tmp_path / str(len(form))
        folder.mkdir()
        text = HEAD + "".join(f"{stamp}{offset},A,1,1,\n" for offset in [*good, *bad])
        found = parsed(folder, text, BARS.replace("format: iso", f"format: {form}"))
        assert [row["ts"].strftime("%H:%M") for row in found.rows] == [
            "22:00", "00:00", "06:15", "21:30", "20:01", "12:00", "12:00"
        ]  # fmt: skip
        assert [one[:2] for one in found.bad] == [(at, "bad_time") for at in range(9, 9 + len(bad))]


@pytest.mark.parametrize("size", [60, 4 << 20])
@pytest.mark.parametrize("form", ["iso", "'%Y-%m-%d %H:%M:%S'", "'%Y-%m-%d %H:%M:%S%z'"])
def test_times_of_far_years_are_out_of_range_and_no_bad_times(tmp_path, monkeypatch, form, size):
    monkeypatch.setattr(lines, "CHUNK", size)
    days = ["0001-01-01", "1600-02-29", "1677-01-01", "1850-01-01", "2262-12-31", "2300-01-01", "9999-12-31"]
    wrong = ["2300-02-29", "9999-13-01", "0000-01-01", "10000-01-01", "1600-01-01T99"]
    tail = "+01:00" if "%z" in form else ""
    yaml = BARS.replace("format: iso", f"format: {form}").replace("note: {type: string}", "note: {type: timestamp}")
    text = HEAD + "".join(f"{day} 10:00:00{tail},A,1,1,\n" for day in [*days, *wrong])
    text += f"2025-01-01 10:00:00{tail},A,1,1,2300-01-01 10:00:00\n2025-01-01 10:00:00{tail},A,1,1,2300-02-29\n"
    found = parsed(tmp_path, text, yaml)
    reasons = [("time_range", "ts")] * len(days) + [("bad_time", "ts")] * len(wrong)
    assert [bad[1:3] for bad in found.bad] == [*reasons, ("time_range", "note"), ("bad_time", "note")]


def test_words_for_the_present_are_no_times(tmp_path):
    words = ["now", "today", "Now", "NaT", "tomorrow"]
    yaml = BARS.replace("{column: ts, format: iso}", "{column: ts, format: '%Y-%m-%d %H:%M'}")
    found = parsed(tmp_path, HEAD + "".join(f"{word},A,1,1,\n" for word in words), yaml)
    assert found.rows == [] and {bad[1] for bad in found.bad} <= {"bad_time", "missing"}


def double_hour(zone: str, day: str, step: int, first: str) -> list[tuple[str, datetime]]:
    """Wall times and instants of some hours, each ``step`` minutes, oldest first."""
    at = datetime.fromisoformat(f"{day} {first}+00:00")
    instants = [at + timedelta(minutes=step * n) for n in range(5 * 60 // step)]
    return [(one.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S"), one) for one in instants]


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [150, 4 << 20])
@pytest.mark.parametrize(
    ("zone", "day", "first", "step"),
    [
        ("America/New_York", "2024-11-03", "03:30", 15),
        ("Europe/Berlin", "2025-10-26", "23:00", 7),
        ("Australia/Lord_Howe", "2024-04-06", "13:00", 5),
    ],
)
def test_the_double_hour_of_a_file_in_any_order_of_listing(tmp_path, monkeypatch, zone, day, first, step, size):
    monkeypatch.setattr(lines, "CHUNK", size)
    start = "2025-10-25" if zone == "Europe/Berlin" else day
    times = double_hour(zone, start, step, first)
    orders = {
        "up.csv": [(at, "A") for at in times],
        "down.csv": [(at, "A") for at in times[::-1]],
        "both.csv": [pair for up, down in zip(times, times[::-1], strict=True) for pair in ((up, "A"), (down, "B"))],
        "one after the other.csv": [(at, "A") for at in times] + [(at, "B") for at in times[::-1]],
    }
    for name, rows in orders.items():
        folder = tmp_path / name[:3]
        folder.mkdir()
        text = HEAD + "".join(f"{wall},{key},{n},1,\n" for n, ((wall, _), key) in enumerate(rows))
        found = parsed(folder, text, BARS.replace("Europe/Berlin", zone))
        assert [row["ts"] for row in found.rows] == [at for (_, at), _ in rows], name
        assert len({(row["ticker"], row["ts"]) for row in found.rows}) == len(rows)


def test_a_file_of_a_double_hour_alone_and_a_series_that_does_not_tell(tmp_path):
    def instants(folder, rows):
        (tmp_path / folder).mkdir()
        text = HEAD + "".join(f"2024-11-03 {time},{key},1,1,\n" for time, key in rows)
        found = parsed(tmp_path / folder, text, BARS.replace("Europe/Berlin", "America/New_York"))
        return [row["ts"].strftime("%H:%M") for row in found.rows]

    passes = [f"01:{minute:02d}" for minute in (0, 15, 30, 45)] * 2
    wanted = ["05:00", "05:15", "05:30", "05:45", "06:00", "06:15", "06:30", "06:45"]
    assert instants("up", [(time, "A") for time in passes]) == wanted
    assert instants("down", [(time, "A") for time in passes[::-1]]) == wanted[::-1]
    # B's two times go down: in a file that goes up they are of two passes, in one that goes down of the first.
    two = [("01:50", "B"), ("01:10", "B")]
    assert instants("other up", [("00:10", "A"), *two, ("03:00", "A")])[1:3] == ["05:50", "06:10"]
    assert instants("other down", [("03:00", "A"), *two, ("00:10", "A")])[1:3] == ["05:50", "05:10"]
    # One reading of the double hour is of the first pass, whatever the order.
    assert instants("hourly", [(time, "A") for time in ("03:00", "02:00", "01:00", "00:00")]) == [
        "08:00", "07:00", "05:00", "04:00"
    ]  # fmt: skip


HOURS = ["00:00", "01:00", "01:00", "02:00", "03:00"]
HOURLY = ["04:00", "05:00", "06:00", "07:00", "08:00"]


def utc(folder, rows, zone="America/New_York", day="2024-11-03"):
    """The times of day in UTC of the rows ``(wall time, key)``."""
    folder.mkdir()
    text = HEAD + "".join(f"{day} {time},{key},{n},1,\n" for n, (time, key) in enumerate(rows))
    found = parsed(folder, text, BARS.replace("Europe/Berlin", zone))
    return [row["ts"].strftime("%H:%M") for row in found.rows]


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [30, 4 << 20])
def test_hourly_data_has_the_one_time_of_the_double_hour_once_for_each_pass(tmp_path, monkeypatch, size):
    monkeypatch.setattr(lines, "CHUNK", size)
    up = [(time, "A") for time in HOURS]
    assert utc(tmp_path / "up", up) == HOURLY
    assert utc(tmp_path / "down", up[::-1]) == HOURLY[::-1]
    both = [pair for up, down in zip(HOURS, HOURS[::-1], strict=True) for pair in ((up, "A"), (down, "B"))]
    told = utc(tmp_path / "both", both)
    assert (told[::2], told[1::2]) == (HOURLY, HOURLY[::-1])
    # By the half hour: the time is that of the series.
    half = [(time.replace(":00", ":30"), "A") for time in HOURS]
    assert utc(tmp_path / "half", half) == [time.replace(":00", ":30") for time in HOURLY]
    # One pass only, and two rows that are all there is.
    assert utc(tmp_path / "once", [up[0], *up[2:]]) == ["04:00", "05:00", "07:00", "08:00"]
    assert utc(tmp_path / "alone", up[1:3]) == ["05:00", "06:00"]
    # A duplicate elsewhere is nothing that the series does.
    assert utc(tmp_path / "duplicate", [*up, up[-1]]) == [*HOURLY, "08:00"]
    howe = [("01:00", "A"), ("01:30", "A"), ("01:30", "A"), ("02:00", "A")]
    assert utc(tmp_path / "howe", howe, "Australia/Lord_Howe", "2024-04-07") == ["14:00", "14:30", "15:00", "15:30"]


@pytest.mark.few(4)
@pytest.mark.parametrize("size", [30, 4 << 20])
@pytest.mark.parametrize(
    ("walls", "wanted"),
    [
        # Each row twice: both are of one pass, or two and two.
        ("00:00 00:00 01:00 01:00 02:00 02:00", "04:00 04:00 05:00 05:00 07:00 07:00"),
        ("00:00 00:00 01:00 01:00 01:00 01:00 02:00 02:00", "04:00 04:00 05:00 05:00 06:00 06:00 07:00 07:00"),
        # Three or four where one is usual: both passes are there.
        ("00:00 01:00 01:00 01:00 02:00", "04:00 05:00 06:00 06:00 07:00"),
        ("00:00 01:00 01:00 01:00 01:00 02:00", "04:00 05:00 05:00 06:00 06:00 07:00"),
        # Of a series with shorter or longer steps the row is a duplicate.
        ("00:00 00:15 00:30 01:15 01:15 02:15 02:30", "04:00 04:15 04:30 05:15 05:15 07:15 07:30"),
        ("01:00 01:15 01:15 01:30", "05:00 05:15 05:15 05:30"),
        ("01:30 01:30 07:30 13:30", "05:30 05:30 12:30 18:30"),
    ],
)
def test_a_time_that_comes_again_is_not_always_another_pass(tmp_path, monkeypatch, walls, wanted, size):
    monkeypatch.setattr(lines, "CHUNK", size)
    rows = [(time, "A") for time in walls.split()]
    assert utc(tmp_path / "up", rows) == wanted.split()
    assert utc(tmp_path / "down", rows[::-1]) == wanted.split()[::-1]


def test_times_of_attributes_are_of_the_first_pass_in_blocks_of_any_size(tmp_path, monkeypatch):
    yaml = BARS.replace("note: {type: string}", "note: {type: timestamp}")
    text = HEAD + "".join(f"2025-01-01,A,1,1,2025-10-26 02:{minute}:00\n" for minute in ("50", "10", "30"))
    monkeypatch.setattr(lines, "CHUNK", 30)
    few = parsed(tmp_path, text, yaml)
    assert [row["note"].strftime("%H:%M") for row in few.rows] == ["00:50", "00:10", "00:30"]


def test_a_zone_is_asked_about_any_year_that_a_calendar_has():
    for day in (date(1678, 1, 1), date(9999, 12, 30), date(2, 1, 1)):
        at = day_start_us(day)
        assert abs(LocalTimes("Europe/Berlin").to_utc(np.array([at]))[0] - at) <= 2 * 3600 * 10**6


DATED = [
    # A format, its good texts as (text, time), and its bad ones as (text, reason).
    ("%a %d.%m.%Y %H:%M", ["Thu 28.11.2019 10:00", "thu 28.11.2019 10:00", "FRI 29.11.2019 10:00"],
     {"Mon 28.11.2019 10:00": "time_contradiction", "Don 28.11.2019 10:00": "bad_time", "28.11.2019 10:00": "bad_time",
      "Mon 28.11.1019 10:00": "time_range"}),
    ("%A, %d %B %Y", ["Thursday, 28 November 2019", "thursday,  28 november 2019"],
     {"Wednesday, 28 November 2019": "time_contradiction"}),
    ("%a %b %d %H:%M:%S %Y %z", ["Thu Nov 28 23:30:00 2019 +1400", "Thu Nov 28 00:30:00 2019 -1200"],
     {"Fri Nov 28 23:30:00 2019 -1200": "time_contradiction"}),
    ("%Y-%m-%d (%j)", ["2019-01-05 (005)", "2019-01-05 (5)", "2019-01-05 (05)", "2019-12-31 (365)"],
     {"2019-01-05 (006)": "time_contradiction", "2020-12-31 (365)": "time_contradiction"}),
    ("%Y-%m-%d %u", ["2019-12-01 7"], {"2019-12-01 1": "time_contradiction"}),
    ("%Y-%m-%d %w", ["2019-12-01 0"], {"2019-12-01 1": "time_contradiction"}),
    ("%Y-%m-%d, %U %a", ["2019-11-28, 47 Thu"],
     {"2019-11-28, 46 Thu": "time_contradiction", "2019-11-28, 47 Fri": "time_contradiction"}),
    ("%d %b %Y, month %m", ["28 Nov 2019, month 11"], {"28 Nov 2019, month 12": "time_contradiction"}),
    ("%Y-%m-%d or %y", ["2019-11-28 or 19"], {"2019-11-28 or 91": "time_contradiction"}),
    # Days and weeks that a year does not have, and none is of the next one.
    ("%Y-%j", ["2019-365", "2020-366", "2019-001", "2019-1"], {"2019-366": "bad_time", "2019-000": "bad_time"}),
    ("%Y-%j %H:%M:%S.%f", ["2019-365 10:00:00.5"], {"2019-366 10:00:00.5": "bad_time"}),
    ("%Y-%j %H:%M %z", ["2019-365 23:00 -0500", "2020-366 01:00 +0100"], {"2019-366 10:00 -0500": "bad_time"}),
    ("%G-W%V-%u", ["2019-W52-7", "2020-W53-7", "2019-W01-1", "2019-W1-1"], {"2019-W53-1": "bad_time"}),
    ("%Y %U %w", ["2019 00 2", "2019 52 2"],
     {"2019 53 1": "bad_time", "2019 00 0": "bad_time", "2019 00 1": "bad_time"}),
    ("%Y %W %a", ["2019 00 Tue", "2019 00 tue", "2019 51 Tue"], {"2019 53 Mon": "bad_time", "2019 00 Mon": "bad_time"}),
    ("%Y %U %w %a", ["2024 08 5 Fri"], {"2024 08 5 Sat": "time_contradiction", "2024 53 5 Fri": "bad_time"}),
    # What looks like it, and is none.
    ("%Y-%m-%dT%H:%M:%S.%f", ["2019-11-28T10:00:00.5"], {}),
    # Digits that can be cut in several ways.
    ("%Y%m%d", ["20240111", "20241101"], {"2024111": "bad_time", "202411": "bad_time"}),
    ("%d%m%Y", ["11012024", "9112024"], {"1112024": "bad_time", "112024": "bad_time"}),
    ("%Y%j", ["2024005"], {"20245": "bad_time"}),
    ("%Y-%m-%d %H%M%S", ["2024-01-01 93000", "2024-01-01 093000"],
     {"2024-01-01 9300": "bad_time", "2024-01-01 13000": "bad_time"}),
    ("%Y%m%d%H%M%S%f", ["20240111100500123", "20240111100500123456", "202401111005001"],
     {"2024111100500": "bad_time"}),
    ("%Y%m%d %H:%M:%S.%f", ["20240111 9:05:00.5", "20240111 09:05:00.123456789"], {"2024111 09:05:00.5": "bad_time"}),
    ("%d%b%Y", ["1Jan2024", "01JAN2024"], {}),
    ("%d/%m/%Y", ["1/2/2024", "01/02/2024"], {}),
]  # fmt: skip


@pytest.mark.few(10)
@pytest.mark.parametrize(("form", "good", "bad"), DATED)
@pytest.mark.parametrize("size", [60, 4 << 20])
def test_a_time_that_contradicts_itself_or_has_two_readings_is_none(tmp_path, monkeypatch, size, form, good, bad):
    monkeypatch.setattr(lines, "CHUNK", size)
    texts = [*bad, *good, *bad]
    yaml = BARS.replace("format: iso", f"format: '{form}'").replace("Europe/Berlin", "UTC")
    found = parsed(tmp_path, HEAD + "".join(f'"{text}",A,1,1,\n' for text in texts), yaml)
    assert [row["line"] for row in found.rows] == [at + len(bad) + 2 for at in range(len(good))]
    assert [row[1:4] for row in found.bad] == [(why, "ts", text) for text, why in bad.items()] * 2
    # As the standard library reads them, in files of any other kind.
    plain = [datetime.strptime(re.sub(r"(\.\d{6})\d+", r"\1", text), form).replace(tzinfo=None) for text in good]
    if "%z" not in form:
        assert [row["ts"].replace(tzinfo=None) for row in found.rows] == plain


def test_every_format_that_a_definition_takes_is_read(tmp_path):
    """The reader of whole columns is another than the one that definitions are checked with."""
    at = datetime(2019, 11, 28)
    taken = 0
    for number in range(1, 4):
        for letters in itertools.combinations("aAbBdGjmuUVwWyY", number):
            form = " ".join(f"%{letter}" for letter in letters)
            if problem_of(form) is None:
                wall = times(pa.array([at.strftime(form)]), form)
                assert wall.known.all() and datetime.fromtimestamp(wall.micros[0] / 1e6, UTC).date() == at.date(), form
                taken += 1
    assert taken > 40


def written_time(rng: random.Random) -> str:
    """A time as somebody may write it, most of them in the common way, with parts at the edges of what there is."""

    def of(common: str, odd: str) -> str:
        return rng.choice((common if rng.random() < 0.9 else odd).split(","))

    text = of("2013,1969,2262,2000,1900", "0001,9999,1677,12013") + of("-", ",/") + of("01,02,12", "00,13,2")
    text += of("-", ",/") + of("01,28,29,31", "00,32,1")
    if rng.random() < 0.9:
        text += of(" ,T", "t,  ") + of("00,23", "24,25,1") + of(":", "") + of("00,59", "60,7")
        if rng.random() < 0.9:
            text += of(":", "") + of("00,59", "60,61,9")
            if rng.random() < 0.7:
                text += of(".", ",") + "".join(rng.choices("059", k=rng.randint(0, 8)))
    return text + of("", "Z,+01:00,+0100, UTC,-00:00, ")


def test_times_that_arrow_reads_are_those_of_all_other_ways(monkeypatch):
    """A block of times in the common way is read by Arrow, any other by pandas: the times are equal."""
    rng = random.Random(7)
    texts = list(dict.fromkeys(written_time(rng) for _ in range(3_000)))
    none = np.zeros(1, bool)
    plain = {text: wall for text in texts if (wall := casts._plain_times(pa.array([text]), none)) is not None}
    assert 300 < len(plain) < len(texts) - 300
    monkeypatch.setattr(casts, "_plain_times", lambda *_: None)
    together = times(pa.array(list(plain)), "iso")
    for name in together._fields:
        found = [getattr(wall, name)[0] for wall in plain.values()]
        assert [t for t, a, b in zip(plain, found, getattr(together, name), strict=True) if a != b] == [], name


def test_a_block_of_common_times_has_times_that_are_missing():
    wall = times(pa.array(["2013-10-08 04:00:00.135", None, "1970-01-01"]), "iso")
    assert wall.micros.tolist() == [1_381_204_800_135_000, 0, 0]
    assert wall.known.tolist() == [True, False, True] and not wall.is_utc.any()
