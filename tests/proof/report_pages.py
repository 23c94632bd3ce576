"""``make report-proof``: the report of the shipped data, every page of it in a real browser that has no network.

Ingests, detects and monitors the shipped days in this process, makes the report, opens every page in light and dark,
and goes its ways by clicks and keys. ``--pictures`` renews the screenshots of ``docs/report/``; ``--home`` takes a lake
that is there already.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from PIL import Image

from chainlake.days import Days
from chainlake.detect.step import detect
from chainlake.ingest.step import ingest
from chainlake.lake.store.files import FilesLake
from chainlake.local.run.shipped import land, shipped_days
from chainlake.monitoring.step import monitor
from chainlake.paths import PROJECT, Home
from chainlake.report.make import make_report
from chainlake.run.ports import Ports
from chainlake.run.tasks import LocalTasks
from tests.report.browser import Page, browser, program
from tests.report.looks import faults_of

#: Screenshots: page, and part of it with which the picture begins, height that is shown, whether it is dark.
PICTURES = {
    "overview": ("index.html", 1180, False),
    "overview-dark": ("index.html", 800, True),
    "pattern": ("patterns/breakdown.html", 3300, False),
    "best": ("patterns/fastest_rises.html", 2100, False),
    "episodes": ("patterns/queue_tail.html#matches", 1410, False),
    "match": ("matches/shakeout/*.html", 2500, False),
    "model": ("models/i5n_speed_profile.html", 2400, False),
    "threshold": ("models/road_mean.html", 1250, False),
    "zones": ("models/road_queue.html", 1500, False),
    "learning": ("models/next_speed.html", 1000, False),
    "faults": ("models/loop_lengths.html", 1200, False),
    "near-misses": ("patterns/shakeout.html#near-misses", 1000, False),
    "data-docs": ("../docs/index.html", 900, False),
    "audit": ("../docs/validations/matches/breakdown/**/*.html", 1100, False),
}
#: No threshold monitor ships, so the lake has this one.
MONITOR = """\
# What it means: the road as a whole is slow; that is when the mean speed of its stations is below 50 mph.
description: Mean speed of the road; tells when it falls below 50 mph, without every reading.
kind: threshold
source: traffic
start: 2025-10-01
nodes: [1205168, 1205175, 1205204, 1205215, 1205262, 1205303, 1205320, 1205330, 1205375, 1205341, 1205380, 1212001,
        1212115, 1212216, 1205432]
value: speed
threshold: 50
missing_if_zero: flow
round: {length: 5 min}
"""
_GROWN = "document.documentElement?.dataset.ready === 'yes'"


def lake(root: Path) -> Home:
    """The shipped days of every source, published, with a model of every kind."""
    base = Home.from_env()
    home = replace(base, root=root, lake=str(root / "lake"), config=root / "config")
    shutil.copytree(PROJECT / "dags" / "config", home.config)
    (home.config / "models" / "road_mean.yaml").write_text(MONITOR)
    ports = Ports(LocalTasks(), FilesLake(home))
    for source, listed in shipped_days(home).items():
        for one in listed:
            land(home, source, one)
        days = Days(listed[0].day, Days.one(listed[-1].day).end)
        for step in (ingest, detect, monitor):
            step(home, source, days, run_id="proof", ports=ports)
    return home


def look(page: Page, report: Path) -> int:
    """Open every page, light and wide, dark and narrow; returns the number of charts drawn."""
    charts = 0
    for path in sorted(report.rglob("*.html")):
        for dark, width in ((False, 1280), (True, 400)):
            page.dark(dark)
            page.wide(width)
            page.open(path)
            charts += page.draw_all()
            _clean(page, str(path.relative_to(report)))
            if faults := faults_of(page):
                raise SystemExit(f"{path.relative_to(report)} at {width} px, {'dark' if dark else 'light'}: {faults}")
    page.dark(False)
    page.wide(1280)
    return charts


def _clean(page: Page, where: str) -> None:
    if page.errors:
        raise SystemExit(f"{where}: the console says {page.errors}")
    asked = [one for one in page.asked if not one.startswith(("file:", "data:"))]
    if asked:
        raise SystemExit(f"{where}: it asks a network for {asked}")


def walk(page: Page, report: Path) -> None:
    """From the grid to a pattern, to a match, back, and to a model by the search."""
    page.open(report / "index.html")
    page.run("document.querySelector('#grid canvas').focus()")
    names = page.run("JSON.parse(document.getElementById('grid-data').textContent).rows.map((row) => row.name)")
    for _ in range(names.index("pattern/shakeout")):
        page.press("ArrowDown")
    page.press("Enter")
    page.until(f"location.href.endsWith('patterns/shakeout.html') && {_GROWN}")
    page.run("document.querySelector('.card a').click()")
    page.until(f"location.href.includes('matches/shakeout/') && {_GROWN}")
    page.run("[...document.querySelectorAll('nav a')].at(-1).click()")
    page.until(f"location.href.endsWith('patterns/shakeout.html') && {_GROWN}")
    page.run("document.querySelector('nav a').click()")
    page.until(f"location.href.endsWith('index.html') && {_GROWN}")
    page.search("bac_beta")
    page.run("document.querySelector('[data-name]:not([hidden]) a').click()")
    page.until(f"location.href.endsWith('models/bac_beta.html') && {_GROWN}")
    _clean(page, "the walk")


def pictures(page: Page, report: Path, folder: Path) -> None:
    """Take the screenshots again."""
    for name, (where, tall, dark) in PICTURES.items():
        page.dark(dark)
        found, _, part = where.partition("#")
        file = next(iter(sorted(report.glob(found))))
        if file.resolve().is_relative_to(report.resolve()):
            page.open(file)
            page.draw_all()
        else:
            # Data Docs are pages of Great Expectations, whose scripts do not say when they are ready.
            page.call("Page.navigate", url=file.resolve().as_uri())
            page.until("document.readyState === 'complete' && location.href.includes('docs')")
        path = folder / f"{name}.png"
        page.screenshot(path, tall=tall, part=part or None)
        shrink(path)


def shrink(path: Path) -> None:
    """Write a picture with few colours, as pages use few: those of the documentation shall load fast."""
    shot = Image.open(path).convert("RGB")
    shot.quantize(128, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> int:
    """Prove it; 0 if every page is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, help="an installation whose days are published")
    parser.add_argument("--pictures", action="store_true", help="renew docs/report/*.png")
    args = parser.parse_args()
    found = program()
    if found is None:
        raise SystemExit("no browser here: install chromium")
    with tempfile.TemporaryDirectory(prefix="chainlake-report-") as folder:
        root = args.home or Path(folder)
        with patch.dict("os.environ", {"CHAINLAKE_HOME": str(root)}):
            home = Home.from_env() if args.home else lake(root)
            began = time.process_time()
            outcome = make_report(home, everything=True)
            print(f"{len(outcome.made)} definitions made in {time.process_time() - began:.1f} CPU seconds", flush=True)
            if outcome.failed:
                raise SystemExit(f"not made: {', '.join(outcome.failed)}")
        report = outcome.index.parent
        with browser(found) as page:
            charts = look(page, report)
            walk(page, report)
            if args.pictures:
                pictures(page, report, PROJECT / "docs" / "report")
        print(f"{len(list(report.rglob('*.html')))} pages in light and dark, {charts} charts: no error, no network")
    return 0


if __name__ == "__main__":
    sys.exit(main())
