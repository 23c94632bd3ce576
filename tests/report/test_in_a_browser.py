"""The pages in a real browser: they load without a network, the console stays empty, and a keyboard gets everywhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chainlake.paths import Home
from tests.report.browser import PROGRAMS, Page, browser, program
from tests.report.conftest import pages

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
    # Counts, six cards and a road; a curve of a match; a coefficient, an error and a road.
    assert list(drawn.values()) == [0, 8, 1, 3]


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
