"""The frame of a page, and HTML in which every text is escaped.

Names, keys and attributes come from files of others. Whatever is not :class:`Html` is escaped where it enters; data for
charts are JSON in a block that no browser runs, and the policy of each page forbids inline scripts and every load from a
network.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

from chainlake.terminal import one_line, visible

#: Files of ``assets/`` that each page loads, in this order.
SCRIPTS = ("vega.min.js", "vega-lite.min.js", "vega-embed.min.js", "report.js")
_POLICY = (
    "default-src 'none'; script-src 'self' file: 'unsafe-eval'; style-src 'self' file: 'unsafe-inline'; "
    "img-src 'self' file: data:; connect-src 'none'; form-action 'none'; base-uri 'none'"
)


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Html:
    """A value as HTML that shows it."""
    return value if isinstance(value, Html) else Html(html.escape(visible(str(value)), quote=True))


def joined(parts: Iterable[object], between: str = "") -> Html:
    """Parts one after another."""
    return Html(between.join(text(part) for part in parts))


def tag(name: str, *children: object, **attributes: object) -> Html:
    """An element; ``class_`` stands for ``class``, ``data_x`` for ``data-x``; attributes of None are left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(one_line(str(value)), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>{joined(children)}</{name}>")


def link(where: str, *children: object, **attributes: object) -> Html:
    """A link."""
    return tag("a", *children, href=where, **attributes)


def section(title: object, *children: object, about: object = None, name: str | None = None) -> Html:
    """A part of a page with its heading, which a reader can jump to by ``name``."""
    said = [] if about is None else [tag("p", about, class_="about")]
    return tag("section", tag("h2", title), *said, *children, id=name)


def table(header: Sequence[object], rows: Iterable[Sequence[object]], caption: str, right: Iterable[int] = ()) -> Html:
    """A table that scrolls by itself where it is wide; columns numbered in ``right`` are aligned there."""
    aligned = frozenset(right)

    def cells(name: str, row: Sequence[object], **more: object) -> Html:
        of = ("n" if number in aligned else None for number in range(len(row)))
        return tag("tr", *(tag(name, cell, class_=kind, **more) for cell, kind in zip(row, of, strict=True)))

    body = [cells("td", row) for row in rows]
    if not body:
        return tag("p", "None.", class_="none")
    head = tag("thead", cells("th", header, scope="col"))
    inner = tag("table", tag("caption", caption), head, tag("tbody", *body))
    return tag("div", inner, class_="wide", tabindex="0", role="region", aria_label=caption)


def details(summary: object, *children: object, open_: bool = False) -> Html:
    """A part that is folded at first."""
    return Html(f"<details{' open' if open_ else ''}>{tag('summary', summary)}{joined(children)}</details>")


def data_block(name: str, value: Any) -> Html:
    """Data for a script of the page: JSON that cannot end its block, whatever it holds."""
    return Html(f'<script type="application/json" id="{html.escape(name, quote=True)}">{_json(value)}</script>')


def _json(value: Any) -> str:
    written = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def chart(spec: dict[str, Any], caption: object, said: str, behind: Html | None = None, *, tall: int = 220) -> Html:
    """A chart with its caption.

    Args:
        spec: in Vega-Lite.
        caption: shown under it.
        said: what a reader who cannot see it is told.
        behind: the same as a table, folded.
        tall: pixels kept free for it, so that the page does not jump.
    """
    holder = tag("div", class_="chart", role="img", aria_label=said, style=f"min-height:{tall}px")
    block = Html(f'<script type="application/json" class="spec">{_json(spec)}</script>')
    return tag("figure", holder, block, tag("figcaption", caption), *([] if behind is None else [behind]))


def document(title: str, body: Iterable[object], *, depth: int, crumbs: Sequence[tuple[str, str | None]]) -> str:
    """A whole page.

    Args:
        title: of the page.
        body: what it shows below its title.
        depth: folders between it and the report's first page.
        crumbs: the way to it: names, with the pages they stand for.
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
