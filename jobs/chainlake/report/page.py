"""The frame of a page of the report, and the markup of charts and data in it.

Data are JSON in a block that no browser runs. The policy of each page forbids inline scripts and loading anything from
a network.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

from chainlake.markup import Html, link, tag

#: Files of ``assets/`` that each page loads, in this order.
SCRIPTS = ("vega.min.js", "vega-lite.min.js", "vega-embed.min.js", "report.js")
_POLICY = (
    "default-src 'none'; script-src 'self' file: 'unsafe-eval'; style-src 'self' file: 'unsafe-inline'; "
    "img-src 'self' file: data:; connect-src 'none'; form-action 'none'; base-uri 'none'"
)


def data_block(name: str, value: Any) -> Html:
    """Data for a script of the page: JSON that cannot end its block, whatever it contains."""
    return Html(f'<script type="application/json" id="{html.escape(name, quote=True)}">{_json(value)}</script>')


def _json(value: Any) -> str:
    written = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def chart(spec: dict[str, Any], caption: object, said: str, behind: Html | None = None, *, tall: int = 220) -> Html:
    """A chart with its caption.

    Args:
        spec: the chart in Vega-Lite.
        caption: text shown below it.
        said: text for a reader who cannot see it.
        behind: the same data as a folded table.
        tall: height reserved for it, in pixels, so that the page does not jump.
    """
    holder = tag("div", class_="chart", role="img", aria_label=said, style=f"min-height:{tall}px")
    block = Html(f'<script type="application/json" class="spec">{_json(spec)}</script>')
    return tag("figure", holder, block, tag("figcaption", caption), *([] if behind is None else [behind]))


def document(title: str, body: Iterable[object], *, depth: int, crumbs: Sequence[tuple[str, str | None]]) -> str:
    """A whole page.

    Args:
        title: title of the page.
        body: what it shows below the title.
        depth: number of folders between it and the report's first page.
        crumbs: the path to it, as names with the pages that they link to.
    """
    up = "../" * depth
    way = [
        tag("li", link(up + where, name) if where is not None else tag("span", name, aria_current="page"))
        for name, where in crumbs
    ]
    head = (
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Html('<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'),
        tag("title", f"{title} · Chainlake report"),
        Html(f'<link rel="icon" href="data:,"><link rel="stylesheet" href="{up}assets/report.css">'),
        *(Html(f'<script defer src="{up}assets/{name}"></script>') for name in SCRIPTS),
    )
    nav = tag("nav", tag("ol", *way), aria_label="Where you are")
    main = tag("main", tag("h1", title), *body, id="main")
    skip = link("#main", "Skip to the content", class_="skip")
    page = tag("html", tag("head", *head), tag("body", skip, tag("header", nav), main), lang="en")
    return f"<!doctype html>\n{page}\n"
