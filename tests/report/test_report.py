"""The report of a small lake: what its pages say, that text from data stays text, and which pages are made when."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import chainlake.report.make as making
from chainlake.cli.main import main
from chainlake.days import Days
from chainlake.lake.locks import local_lock
from chainlake.paths import Home
from chainlake.report import patterns
from chainlake.report.kept import Kept, folder_of, is_due, note_due, take_due
from chainlake.report.make import after_step, make_report
from tests.report import lab
from tests.report.conftest import pages

pytestmark = pytest.mark.slow


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What the package logs, whether it hands it on or not."""
    logger = logging.getLogger("chainlake")
    logger.addHandler(caplog.handler)
    with caplog.at_level(logging.INFO, "chainlake"):
        yield caplog
    logger.removeHandler(caplog.handler)


class Read(HTMLParser):
    """Elements with their attributes, and the text outside of scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.data: list[str] = []
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One more element."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        """What follows is not inside it."""
        self._inside = ""

    def handle_data(self, data: str) -> None:
        """Text, or what a script holds."""
        (self.data if self._inside == "script" else self.texts).append(data)

    @property
    def text(self) -> str:
        """All of it, one blank between words."""
        return " ".join(" ".join(self.texts).split())


def read(path: Path) -> Read:
    """A page."""
    return Read(path.read_text(encoding="utf-8"))


def test_every_page_loads_nothing_and_holds_data_as_text(reported: Home) -> None:
    found = pages(reported)
    assert {"index.html", "patterns/jam.html", "patterns/drops.html", "models/mean.html"} <= set(found)
    for name, path in found.items():
        page = read(path)
        loaded = [value for tag, attrs in page.elements for key, value in attrs.items() if key in ("src", "href")]
        assert not [where for where in loaded if "//" in where], name
        assert not [key for _, attrs in page.elements for key in attrs if key.startswith("on")], name
        scripts = [attrs for tag, attrs in page.elements if tag == "script"]
        assert all("src" in one or one.get("type") == "application/json" for one in scripts), name
        assert all(json.loads(one) for one in page.data if one.strip()), name
        # Every link leads somewhere.
        here = [where for tag, attrs in page.elements if tag == "a" and (where := attrs["href"]) and where[0] != "#"]
        assert not [where for where in here if not (path.parent / where.split("#")[0]).is_file()], name
    assert "free traffic that <b>breaks</b> down" in read(found["index.html"]).text


def test_a_match_says_its_events_its_lines_and_its_reasons(reported: Home) -> None:
    found = [read(path) for name, path in pages(reported).items() if name.startswith("matches/jam/")]
    # Of the detector "one", the last reading at half the speed of a free one is that of 12:30, and 12:15 the free one
    # that is within a quarter of an hour: its seventh and fourth in a file of three detectors below a header line.
    (page,) = (one for one in found if one.text.startswith("jam, 2025-03-02 12:30:00"))
    assert "2025-03-02 12:30:00 (20:30:00 UTC)" in page.text
    assert "position (mi)" in page.text and "speed (mph)" in page.text
    table = page.text[page.text.index("Its events") : page.text.index("Why it is a match")]
    assert re.search(r"free 2025-03-02 12:15:00 .* one 10 59 .* 2025-03-02\.csv 11 ", table)
    assert re.search(r"slow 2025-03-02 12:30:00 .* one 10 23 .* 2025-03-02\.csv 20", table)
    why = page.text[page.text.index("Why it is a match") : page.text.index("Where it comes from")]
    assert "free.speed >= 58 59 >= 58 yes" in why
    assert "slow.speed <= free.speed * 0.5 23 <= 59 * 0.5, that is 23 <= 29.5 yes" in why
    assert "no event better where" in why and "none was found" in why


def test_a_name_from_data_is_shown_as_it_is(reported: Home) -> None:
    assert any(lab.HOSTILE in read(path).text for name, path in pages(reported).items() if name.startswith("matches/"))
    assert all("<script>alert" not in path.read_text() for path in pages(reported).values())


def test_the_page_of_a_pattern_says_its_meaning_its_counts_and_its_near_misses(reported: Home) -> None:
    page = read(pages(reported)["patterns/jam.html"])
    assert "A detector that was free is slow within a quarter of an hour." in page.text
    assert "15 min: the first and the last event are at most this far apart" in page.text
    # Brute force: free readings of at least 58 and readings of at most half of it, later, at most 15 minutes apart.
    count = sum(
        1
        for speeds in lab.SPEEDS.values()
        for at, free in enumerate(speeds)
        for slow in speeds[at + 1 : at + 4]
        if free >= 58 and slow <= free * 0.5
    )
    assert re.search(rf"2025-03-02 {count} done", page.text) and re.search(rf"{2 * count} matches published", page.text)
    assert f"matches decided on this day {count}" in page.text
    specs = [json.loads(data) for data in page.data if data.startswith('{"$schema"')]
    assert any(
        layer["mark"]["type"] == "rect" and "p2" in str(layer["encoding"]) for one in specs for layer in one["layer"]
    )


def test_a_ranking_shows_its_best_matches(reported: Home) -> None:
    page = read(pages(reported)["patterns/drops.html"])
    # The deepest drop of five minutes is 60 to 20; the second 59 to 25.
    assert "rank 1 of the day from 2025-03-02 00:00 UTC, score 40" in page.text
    assert "rank 2 of the day from 2025-03-02 00:00 UTC, score 34" in page.text
    # How a search works is not its meaning, and is said in the folded part only.
    meaning, _, search = page.text.partition("How it is searched")
    assert "ranks" in meaning and "strategy" not in meaning and "strategy" in search


def test_the_page_of_a_model_tells_its_changes_in_words(reported: Home) -> None:
    page = read(pages(reported)["models/mean.html"])
    assert re.search(r"change constant goes from \d+", page.text) and "eps: a larger distance is a change" in page.text
    assert sum(one.startswith('{"$schema"') for one in page.data) == 3


def test_only_pages_of_what_was_published_are_made_again(own: Home) -> None:
    make_report(own)  # its folder is another one
    before = {name: path.stat().st_mtime_ns for name, path in pages(own).items()}
    assert make_report(own).made == ()
    text = (own.config / "patterns" / "jam.sase").read_text()
    (own.config / "patterns" / "jam.sase").write_text(text.replace(">= 58", ">= 60"))
    assert make_report(own).made == ("pattern/jam",)
    after = {name: path.stat().st_mtime_ns for name, path in pages(own).items()}
    same = {name for name in before if before[name] == after.get(name)}
    assert {"patterns/drops.html", "models/mean.html"} <= same and "patterns/jam.html" not in same
    assert "stale" in read(pages(own)["patterns/jam.html"]).text
    lab.land(own, "2025-03-03")
    lab.run(own, Days.parse("2025-03-03", "2025-03-04"))
    assert set(make_report(own).made) == {"pattern/jam", "pattern/drops", "model/mean"}
    assert "2025-03-03" in read(pages(own)["patterns/drops.html"]).text


def test_an_edit_of_words_makes_the_page_again(own: Home) -> None:
    """A description, a comment and a unit change no row, and the pages show them."""
    make_report(own)
    edits = (
        ("patterns/jam.sase", "description: free traffic", "description: smooth traffic", "patterns/jam.html"),
        ("patterns/jam.sase", "a detector that was free", "a detector that was empty", "patterns/jam.html"),
        ("models/mean.yaml", "description: ", "description: Newly said. ", "models/mean.html"),
        ("sources/road.yaml", "unit: mph", "unit: knots", "patterns/jam.html"),
    )
    for file, old, new, page in edits:
        path = own.config / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        assert make_report(own).made, file
        assert new.removeprefix("unit: ").removeprefix("description: ").strip() in read(pages(own)[page]).text, file
    assert make_report(own).made == ()


def test_a_page_of_a_removed_pattern_is_removed(own: Home) -> None:
    (own.config / "patterns" / "drops.sase").unlink()
    make_report(own)
    assert not [name for name in pages(own) if "drops" in name]
    told = read(pages(own)["index.html"]).text
    assert "ranked/drops: its file is gone: 'chainlake retire pattern/drops' ends it" in told


def test_a_page_that_cannot_be_made_is_named_and_stops_no_other(
    own: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = pages(own)["patterns/jam.html"].read_text()
    whole = patterns.pages

    def broken(of: patterns.Subject) -> dict[str, str]:
        if of.compiled.pattern.name == "jam":
            raise RuntimeError("no ink left")
        return whole(of)

    monkeypatch.setenv("CHAINLAKE_CONFIG", str(own.config))
    with monkeypatch.context() as patch:
        patch.setattr(patterns, "pages", broken)
        assert main(["report", "--all"]) == 5
        assert "the page of pattern/jam could not be made" in capsys.readouterr().out
        assert make_report(own).failed == ("pattern/jam",)
    assert pages(own)["patterns/jam.html"].read_text() == old
    assert "pattern/jam could not be made: unexpected RuntimeError: no ink left" in read(pages(own)["index.html"]).text
    capsys.readouterr()
    assert main(["status"]) == 0
    assert "report: the page of pattern/jam could not be made" in capsys.readouterr().out
    assert main(["report"]) == 0
    assert "pages of 1 definition made: " in capsys.readouterr().out
    assert main(["report"]) == 0
    assert capsys.readouterr().out.startswith("all pages are current: ")
    assert "no ink left" not in read(pages(own)["index.html"]).text


def test_a_report_after_a_step_never_fails_it(
    own: Home, monkeypatch: pytest.MonkeyPatch, told: pytest.LogCaptureFixture
) -> None:
    def fails(home: Home) -> None:
        raise RuntimeError("the records are on fire")

    monkeypatch.setattr(making, "judge_all", fails)
    after_step(own, 1000.0)
    assert "the records are on fire" in told.text


def test_steps_give_a_twentieth_of_their_time(own: Home, told: pytest.LogCaptureFixture) -> None:
    index, folder = pages(own)["index.html"], folder_of(own)
    before = index.stat().st_mtime_ns
    after_step(own, 0.01)
    assert "it may take 5 % of the steps' time" in told.text and index.stat().st_mtime_ns == before and is_due(folder)
    # What they gave adds up.
    after_step(own, 10_000.0)
    assert index.stat().st_mtime_ns > before and not is_due(folder)


def test_a_report_that_is_being_made_elsewhere_is_not_waited_for(own: Home, told: pytest.LogCaptureFixture) -> None:
    with local_lock(own, "report"):
        after_step(own, 1000.0)
    assert "another step is making it" in told.text
    assert is_due(folder_of(own)), "whoever makes it sees that there is more to do"


def test_what_is_published_while_a_report_is_made_is_in_the_next(own: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, made = making._make, []

    def while_making(home: Home, budget: float | None, *, everything: bool = False) -> making.Outcome:
        if not made:
            note_due(folder_of(home), 1000.0)
        made.append(budget)
        return whole(home, budget, everything=everything)

    monkeypatch.setattr(making, "_make", while_making)
    after_step(own, 1000.0)
    assert len(made) == 2 and not is_due(folder_of(own))


def test_the_state_of_a_report_is_kept_and_a_damaged_one_makes_all_pages(own: Home) -> None:
    folder = folder_of(own)
    note_due(folder, 1.5)
    note_due(folder, 2.0)
    assert take_due(folder) == 3.5 and take_due(folder) == 0.0
    assert set(Kept.read(folder).pages) == {"pattern/jam", "pattern/drops", "model/mean"}
    (folder / ".made.json").write_text('{"version": ')
    assert len(make_report(own).made) == 3


@pytest.mark.usefixtures("pages")
def test_a_step_names_the_report_and_its_pages_show_what_it_published(
    own: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(own.config))
    text = (own.config / "patterns" / "drops.sase").read_text()
    (own.config / "patterns" / "drops.sase").write_text(text.replace("TOP 2", "TOP 1"))
    (folder_of(own) / ".made.json").write_text("{}")  # so that no page costs more than its share
    assert main(["detect", "road", str(lab.DAYS.start), str(lab.DAYS.end), "--pattern", "drops"]) == 0
    out = capsys.readouterr().out
    assert f"report: {own.root / 'report' / 'index.html'}" in out
    assert out.splitlines()[-1].startswith("detect road"), "the result is the last line"
