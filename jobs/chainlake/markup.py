"""HTML in which every text is escaped where it enters, unless it is :class:`Html` already.

Names, keys and attributes come from files of others; a value such as ``<script>`` must stay a text on every page.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from datetime import date

from chainlake.terminal import one_line, visible


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
        of = (
            "n" if number in aligned else "day" if isinstance(cell, date) else None for number, cell in enumerate(row)
        )
        return tag("tr", *(tag(name, cell, class_=kind, **more) for cell, kind in zip(row, of, strict=True)))

    body = [cells("td", row) for row in rows]
    if not body:
        return tag("p", "None.", class_="none")
    head = tag("thead", cells("th", header, scope="col"))
    inner = tag("table", tag("caption", caption), head, tag("tbody", *body))
    return tag("div", inner, class_="wide", tabindex="0", role="region", aria_label=caption)


def details(summary: object, *children: object) -> Html:
    """A part that is folded at first."""
    return Html(f"<details>{tag('summary', summary)}{joined(children)}</details>")
