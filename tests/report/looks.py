"""What is wrong with how a page looks and reads, found in the browser that shows it.

Texts that nobody can read for their colour, labels of a chart that lie on one another or are cut off, a page that is
wider than its window, and what a screen reader would find without a name.
"""

from __future__ import annotations

from pathlib import Path

from tests.report.browser import Page

#: Pixels by which two labels may touch: their boxes are those of the font, not of its letters.
_TOUCH = 3

_SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


def faults_of(page: Page) -> list[str]:
    """Everything that is wrong with the page that is open, all of its charts drawn; nothing if all is well."""
    return [str(one) for one in page.run(_SCRIPT.replace("TOUCH", str(_TOUCH)))]
