"""Airflow's pages of the shipped DAGs in a real browser: pictures for ``docs/airflow/``, and what they must offer.

Usage: ``python -m tests.proof.airflow_pages ADDRESS``: the address that ``make airflow`` prints, after ``make run``.
A page that lacks one of the words that the documentation promises ends it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from chainlake.paths import PROJECT
from tests.proof.report_pages import shrink
from tests.report.browser import Page, browser, program

_SETTLED = "!document.querySelector('[class*=skeleton i], [class*=spinner i], [role=progressbar]')"


@dataclass(frozen=True)
class Shown:
    """A page.

    Args:
        path: below Airflow's address.
        click: name of the button that is pressed there.
        says: words that must be there then.
    """

    path: str
    click: str | None
    says: tuple[str, ...]


SHOWN = {
    "home": Shown("/", None, ("Failed Dags", "Triggerer", "Asset Events")),
    "documentation": Shown("/dags/detect_stock", "Dag Docs", ("Dag Documentation", "patterns on them")),
    "runs": Shown("/dags/detect_stock/runs", None, ("scheduled__", "backfill__", "one run per UTC day")),
    "form": Shown("/dags/backfill_history", "Trigger Dag", ("first day (UTC)", "day after the last", "patterns")),
    "assets": Shown("/assets", None, ("events.stock", "matches.shakeout", "models.bac_beta")),
}


def visit(page: Page, address: str, shown: Shown) -> None:
    """Open a page and press its button.

    Raises:
        TimeoutError: it does not say what it should within minutes.
    """
    page.call("Page.navigate", url=address + shown.path)
    page.until(f"location.pathname === {json.dumps(shown.path)} && {_SETTLED}", 180)
    if shown.click is not None:
        button = f"document.querySelector('button[aria-label={json.dumps(shown.click)}]')"
        page.until(f"{button} && !{button}.disabled", 180)
        page.run(f"{button}.click()")
    for word in shown.says:
        page.until(f"document.body.innerText.includes({json.dumps(word)})", 180)
    # Some of Airflow's pages always have something that turns.
    time.sleep(2)


def main() -> int:
    """Take the pictures; 0 if every page says what it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="printed by make airflow")
    args = parser.parse_args()
    found = program()
    if found is None:
        raise SystemExit("no browser here: install chromium")
    where = urlsplit(args.address)
    with browser(found) as page:
        page.wide(1280)
        page.call("Page.navigate", url=args.address)
        page.until("document.body && document.body.innerText.includes('Dags')", 180)
        for name, shown in SHOWN.items():
            visit(page, f"{where.scheme}://{where.netloc}", shown)
            path = PROJECT / "docs" / "airflow" / f"{name}.png"
            page.screenshot(path, width=1280, tall=900)
            shrink(path)
            print(f"{name}: {path}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
