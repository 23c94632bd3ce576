"""How definitions' comments, prose and times are shown."""

from __future__ import annotations

from datetime import UTC, datetime

from chainlake.days import us_of
from chainlake.report.showing import Clock, comment, number, short, with_code
from tests.report.companion_rows import NOON


def test_the_comment_at_the_head_is_a_paragraph() -> None:
    assert comment("---\n# What it means: a jam\n#   that grows.\nsource: s\n# not this\n") == ["A jam that grows."]
    assert comment("# One curve.\nsource: s\n") == ["One curve."]
    assert comment("source: s\n") == []


def test_prose_has_code_and_emphasis_and_is_escaped() -> None:
    assert with_code("the time of `jam <1>` is *seen*") == "the time of <code>jam &lt;1&gt;</code> is <em>seen</em>"
    assert with_code("BAC = beta * SPY * 2, R = c * gas^-a, 3`") == "BAC = beta * SPY * 2, R = c * gas^-a, 3`"


def test_a_short_time_says_its_zone() -> None:
    assert Clock("America/New_York").short(us_of(NOON)) == "2025-10-01 08:00:00 EDT"
    assert Clock("UTC").short(us_of(NOON)) == "2025-10-01 12:00:00 UTC"


def test_a_time_axis_says_every_distance_from_utc() -> None:
    clock, hour = Clock("America/Los_Angeles"), 3_600_000_000
    noon = us_of(datetime(2024, 3, 9, 20, tzinfo=UTC))
    # Clocks went from 02:00 to 03:00 on 10 March 2024, 14 hours after that noon.
    assert clock.title(noon, noon + 14 * hour) == "America/Los_Angeles (UTC−8 h), below it UTC"
    assert clock.title(noon, noon + 96 * hour) == "America/Los_Angeles (UTC−8 h, from 10 Mar UTC−7 h), below it UTC"
    year = clock.title(noon, noon + 300 * 24 * hour)
    assert year == "America/Los_Angeles (UTC−8 h, from 10 Mar UTC−7 h, from 03 Nov UTC−8 h), below it UTC"
    years = clock.title(noon, noon + 3000 * 24 * hour)
    assert years == "America/Los_Angeles (UTC−8 h or UTC−7 h), below it UTC"
    assert Clock("UTC").title(noon, noon + hour) == "time (UTC)"


def test_a_number_has_all_digits_before_the_point_and_no_noise() -> None:
    assert number(93.4 - 85.8) == "7.6" and number(182.98 - 182.97) == "0.01"
    assert number(1669875.48) == "1,669,875" and number(16698754.8) == "16,698,755" and number(0.0) == "0"
    assert number(-12345.678) == "-12,345.7" and number(100.0) == "100" and number(0.00012345678) == "0.000123457"
    assert number(1.5e-7) == "1.5e-07" and number(2e20) == "2e+20" and number(float("inf")) == "inf"


def test_a_computed_value_has_four_digits() -> None:
    assert [short(one) for one in (53.273333, 0.883754, 1234567.8, -0.0065, 52, None, float("nan"))] == [
        "53.27", "0.8838", "1,234,568", "-0.0065", "52", "–", "–"
    ]  # fmt: skip
