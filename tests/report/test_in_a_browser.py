"""The pages in a real browser: they load without a network, the console stays empty, and a keyboard gets everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from chainlake.days import day_start_us
from chainlake.markup import table, tag
from chainlake.paths import Home
from chainlake.report import companions
from chainlake.report.drawing import charts
from chainlake.report.drawing.charts import Span
from chainlake.report.drawing.labels import Mark
from chainlake.report.page import chart, document
from chainlake.report.showing import Clock
from chainlake.schemas.models import FAULT_SCORES, LEARNERS, METRICS, ZONE_EVENTS
from tests.report.browser import PROGRAMS, Page, browser, program
from tests.report.companion_rows import OCTOBER, add, fault_score, learner_day, zone_event
from tests.report.conftest import pages
from tests.report.looks import faults_of
from tests.report.test_companions import loaded

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(program() is None, reason=f"no browser here: none of {', '.join(PROGRAMS)}"),
]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A tab."""
    found = program()
    assert found is not None
    with browser(found) as tab:
        yield tab


def test_every_kind_of_page_draws_its_charts_without_a_network(page: Page, reported: Home) -> None:
    found = pages(reported)
    kinds = (
        "index.html",
        "patterns/jam.html",
        next(name for name in found if "matches/jam" in name),
        "models/mean.html",
    )
    drawn = {}
    for name in kinds:
        page.open(found[name])
        drawn[name] = page.draw_all()
        assert not page.run("[...document.querySelectorAll('.chart.error')].length"), name
    assert page.errors == [] and [where for where in page.asked if not where.startswith(("file:", "data:"))] == []
    # Counts, six cards and a road for each of two days; a curve of a match; a coefficient, an error and a road.
    assert list(drawn.values()) == [0, 9, 1, 3]


def test_all_can_be_read_in_the_light_and_in_the_dark_in_wide_windows_and_narrow_ones(
    page: Page, reported: Home, home: Home
) -> None:
    found = pages(reported)
    add(home, ZONE_EVENTS, [zone_event(5 * at, kind, ["a", "b"]) for at, kind in enumerate(("balanced", "outside"))])
    add(home, LEARNERS, [learner_day(on, learner, 7.0) for on in OCTOBER for learner in ("a", "b")])
    add(home, FAULT_SCORES, [fault_score(on, name, p) for on in OCTOBER for name, p in (("a", 0.001), ("b", 0.7))])
    add(home, METRICS, [{"model": "road_queue", "day": OCTOBER[0], "rounds": 9, "rounds_skipped": 0,
                         "reports_up": 5, "polls_down": 7}])  # fmt: skip
    names = ["index.html", "patterns/jam.html", "patterns/drops.html", "models/mean.html"]
    names.append(next(name for name in found if "matches/jam" in name))
    for name in ("road_queue", "next_speed", "loop_lengths"):
        path = reported.root / "report" / "models" / f"{name}.html"
        path.write_text(document(name, companions.found(home, loaded(home, name)), depth=1, crumbs=[]))
        names.append(f"models/{name}.html")
    wrong = []
    for name in names:
        for dark, width in ((False, 1280), (True, 400)):
            page.dark(dark)
            page.wide(width)
            page.open(reported.root / "report" / name)
            page.draw_all()
            wrong += [f"{name}, {'dark' if dark else 'light'}, {width} px: {one}" for one in faults_of(page)]
    page.dark(False)
    page.wide(1280)
    assert wrong == [] and page.errors == []


def test_a_label_near_the_end_of_a_time_axis_stays_in_the_picture(page: Page, reported: Home) -> None:
    half = 1_800_000_000
    begin = day_start_us(date(2013, 10, 7))
    # The last of the labels that a narrow picture has room for stands at 12:00, four hours before the end.
    span = Span(begin + 27 * half, begin + 136 * half, Clock("America/New_York"))
    drawn = chart(charts.series(span, {"a": [(span.lo_us, 1.0), (span.hi_us, 2.0)]}, title="x"), "a line", "a line")
    path = reported.root / "report" / "end.html"
    path.write_text(document("End", [drawn], depth=0, crumbs=[]))
    page.wide(400)
    page.open(path)
    assert page.draw_all() == 1
    assert faults_of(page) == []
    page.wide(1280)


def test_a_legend_of_many_names_stays_in_a_narrow_picture(page: Page, reported: Home) -> None:
    begin = day_start_us(date(2025, 3, 1))
    span = Span(begin, begin + 86_400_000_000, Clock("UTC"))
    lines = {f"detector 120{at}": [(span.lo_us, 1.0), (span.hi_us, 2.0)] for at in range(9)}
    points = {name: [(span.lo_us, 1.0)] for name in lines}
    marks = [Mark(begin + 43_200_000_000, 1.5, "a", "an event")]
    drawn = (charts.series(span, lines, title="x"), charts.curve(span, lines, marks, None, title="x"),
             charts.dots(span, points, title="x"))  # fmt: skip
    path = reported.root / "report" / "many.html"
    path.write_text(document("Many", [chart(one, "lines", "lines") for one in drawn], depth=0, crumbs=[]))
    for width in (400, 1280):
        page.wide(width)
        page.open(path)
        assert page.draw_all() == 3
        assert faults_of(page) == [] and page.errors == []


def test_a_table_of_sentences_has_short_rows_in_a_narrow_window(page: Page, reported: Home) -> None:
    said = "speed is 18.7 mph lower at position 102.7 mi (52.2 to 33.5); on average 2.2 mph higher than before"
    when = tag("time", "2025-10-03 23:15:00 (10-04 06:15:00 UTC)")
    drawn = table(("from", "day", "in words"), [(when, date(2025, 10, 3), said)], "Changes of a model, latest first")
    path = reported.root / "report" / "sentences.html"
    path.write_text(document("Sentences", [drawn], depth=0, crumbs=[]))
    page.wide(400)
    page.open(path)
    line = page.run("document.querySelector('td time').getBoundingClientRect().height")
    assert page.run("document.querySelector('tbody tr').getBoundingClientRect().height") < 7 * line
    # A day is one word, and a caption ends where its window ends.
    assert page.run("getComputedStyle(document.querySelectorAll('td')[1]).whiteSpace") == "nowrap"
    assert page.run("document.querySelector('caption').getBoundingClientRect().right") <= 400
    page.wide(1280)


def test_the_line_of_an_event_is_in_a_wide_window_without_scrolling(page: Page, reported: Home) -> None:
    attributes = ("open (USD)", "high (USD)", "low (USD)", "close (USD)", "volume (shares)")
    file = tag("code", "us_equity_minute_trade_20131009.csv.gz", class_="file")
    when = tag("time", "2013-10-09 14:23:00 (18:23:00 UTC)")
    row = (tag("b", "down"), when, "AIG", "47.86", "47.86", "47.77", "47.77", "26,571", file, "1,234")
    drawn = table(("name", "time", "ticker", *attributes, "file", "line"), [row], "Events", right=[3, 4, 5, 6, 7, 9])
    path = reported.root / "report" / "events.html"
    path.write_text(document("Events", [drawn], depth=0, crumbs=[]))
    page.wide(1280)
    page.open(path)
    assert (
        page.run("(() => { const box = document.querySelector('.wide'); return box.scrollWidth - box.clientWidth; })()")
        == 0
    )


def test_a_label_of_the_grid_names_the_year_where_days_are_left_out(page: Page, reported: Home) -> None:
    text = pages(reported)["index.html"].read_text()
    head, rest = text.split('id="grid-data">', 1)
    data = json.loads(rest[: rest.index("</script>")])
    # Three stretches of days, of which the first days stand too close in a narrow window to be named all.
    data["spans"], data["days"] = [["2013-10-06", 2], ["2015-08-24", 4], ["2025-09-30", 5]], 11
    for row in data["rows"]:
        row.update(states="0x11", counts="1x11", why={})
    path = reported.root / "report" / "stretches.html"
    path.write_text(f'{head}id="grid-data">{json.dumps(data)}{rest[rest.index("</script>") :]}')
    page.wide(400)
    page.open(path)
    page.run(
        "window.written = []; const write = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {"
        " if (y === 11) written.push(text); return write.call(this, text, x, y); };"
        "dispatchEvent(new Event('resize'))"
    )
    written = page.run("written")
    page.wide(1280)
    years = [label for label in written if len(label) == len("2013-10-06")]
    assert years[0] == "2013-10-06" and "2015-08-24" < years[1] < "2015-08-28"


def test_what_cannot_be_read_is_found(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text(
        "<!doctype html><html data-ready=yes><body style='background:#fff'><h1>One</h1><h3>Three</h3>"
        "<p style='color:#bbb'>pale</p><div style='width:3000px'>.</div><input><a href=x></a>"
        "<table><thead><tr><th>a</th></tr></thead></table><div role=img></div>"
        "<div class=chart><svg width=200 height=50><text x=20 y=20>first</text><text x=25 y=22>second</text>"
        "<text x=180 y=40>cut off here</text></svg></div></body></html>"
    )
    page.open(path)
    told = "\n".join(faults_of(page))
    for one in ("wider than its window: 3", "contrast 1.9: pale", "on 'second': first", "cut off: cut off here",
                "no label", "no text", "no caption", "no scope", "no aria-label", "no language",
                "a heading leaves out a level: Three"):  # fmt: skip
        assert one in told


def test_the_tab_key_reaches_everything_and_shows_where_it_is(page: Page, reported: Home) -> None:
    page.open(pages(reported)["index.html"])
    reached = []
    for _ in range(30):
        page.press("Tab")
        said, outline = page.run(
            "(() => { const one = document.activeElement, box = one.getBoundingClientRect();"
            " return [one.id || one.textContent.trim() || one.tagName,"
            " box.width > 0 && box.left >= 0 ? getComputedStyle(one).outlineStyle : 'out of sight']; })()"
        )
        if page.run("document.activeElement === document.body"):
            break
        assert outline == "solid", said
        reached.append(said)
    assert reached[:3] == ["Skip to the content", "Status", "Rows published"]
    assert {"find", "pattern/jam", "Conditions tested on its last 30 days, as ops.plans has them"} <= {
        one.split("definition")[0] for one in reached
    }
    # The first of them leads past the navigation.
    page.open(pages(reported)["patterns/jam.html"])
    page.press("Tab")
    page.press("Enter")
    page.until("location.hash === '#main'")
    page.press("Tab")
    assert page.run("document.getElementById('main').contains(document.activeElement)")


def test_a_click_leads_from_the_grid_to_a_match_and_back(page: Page, reported: Home) -> None:
    found = pages(reported)
    page.open(found["index.html"])
    page.run("document.querySelector('#grid canvas').focus()")
    for key in ("ArrowDown", "ArrowDown", "ArrowLeft"):
        page.press(key)
    # The third of model/mean, pattern/drops, pattern/jam; the last day but one.
    assert page.run("document.getElementById('said').textContent").startswith("pattern/jam 2025-03-01: done, ")
    page.press("Enter")
    page.until("location.href.endsWith('patterns/jam.html') && document.documentElement?.dataset.ready === 'yes'")
    page.run("document.querySelector('.card a').click()")
    page.until("location.href.includes('matches/jam/') && document.documentElement?.dataset.ready === 'yes'")
    page.run("document.querySelector('nav a').click()")
    page.until("location.href.endsWith('report/index.html') && document.documentElement?.dataset.ready === 'yes'")
    page.search("drops")
    assert page.run("[...document.querySelectorAll('[data-name]')].filter((row) => !row.hidden).length") == 2
    assert page.errors == []
