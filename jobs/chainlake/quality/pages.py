"""Renders Data Docs as HTML: pages of our own in the site that Great Expectations keeps.

Great Expectations' own pages load styles, fonts and scripts from the Internet, and speak only of columns. Ours contain
everything that they need, say first what an expectation means, and escape every text from data once, where it enters
(``chainlake.markup``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chainlake.markup import Html, details, joined, link, section, table, tag
from chainlake.quality.docs import label_of

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark; --bg: #fff; --fg: #1b1f24; --soft: #57606a; --line: #d0d7de; --card: #f6f8fa;
  --link: #0b5cad; --good: #0072b2; --bad: #c04a00; }
@media (prefers-color-scheme: dark) { :root { --bg: #14171b; --fg: #e6e9ed; --soft: #a4adb8; --line: #39414b;
  --card: #1d2127; --link: #7ab8f0; --good: #56b4e9; --bad: #f08a3c; } }
body { margin: 0 auto; max-width: 1100px; padding: 1rem 1.25rem 3rem; background: var(--bg); color: var(--fg);
  font: 16px/1.5 system-ui, "DejaVu Sans", Arial, sans-serif; }
a { color: var(--link); }
a:focus-visible, [tabindex]:focus-visible, summary:focus-visible { outline: 3px solid var(--bad); }
h1 { font-size: 1.6rem; margin: .4rem 0; overflow-wrap: anywhere; } h2 { font-size: 1.2rem; margin: 2rem 0 .4rem; }
.about, .small, caption { color: var(--soft); font-size: .86rem; } caption { text-align: left; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
.none { color: var(--soft); font-style: italic; } .wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .93rem; }
th, td { padding: .3rem .9rem .3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .86em; overflow-wrap: anywhere; }
summary { cursor: pointer; color: var(--link); width: fit-content; }
"""
#: How many values that break an expectation are shown, and how long each may be.
_SHOWN, _LONG = 20, 200


@dataclass(frozen=True)
class Page:
    """A page without its frame.

    Args:
        title: its heading.
        body: what follows it.
    """

    title: str
    body: Html


class Words:
    """A view for Great Expectations that puts a :class:`Page`, which a renderer below gives, into its frame."""

    def __init__(self, **_: Any) -> None:
        """Take no folders of styles and templates, since there are none."""

    def render(self, page: Page, **_: Any) -> str:
        """The HTML of a page."""
        head = (
            Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><link rel="icon" href="data:,">'),
            tag("title", f"{page.title} · Data Docs"),
            Html(f"<style>{_STYLE}</style>"),
        )
        main = tag("main", tag("h1", page.title), page.body)
        return f"<!doctype html>\n{tag('html', tag('head', *head), tag('body', main), lang='en')}\n"


class _Renderer:
    """The base of all renderers, which Great Expectations makes and gives its context."""

    def __init__(self, **_: Any) -> None:
        """Take no context, since none is needed."""


class SuitePage(_Renderer):
    """The page of a suite: what must be true."""

    def render(self, suite: Any) -> Page:
        """The page for a suite of Great Expectations."""
        rows = [(_meaning(one.configuration), _small(one.configuration)) for one in suite.expectations]
        body = joined([
            tag("p", "What is checked before rows are published. A day that breaks one of these is not published."),
            table(("what must hold", "rule"), rows, f"{len(rows):,} expectations"),
        ])  # fmt: skip
        return Page(suite.name, body)


class ResultPage(_Renderer):
    """The page of a result: what holds, what is broken, and by which rows."""

    def render(self, result: Any) -> Page:
        """The page for the result of a suite."""
        run = _run(result.meta["run_id"])
        broken = [one for one in result.results if not one.success]
        verdict = (
            tag("p", f"All {len(result.results):,} expectations hold.", class_="good")
            if not broken
            else tag("p", f"{len(broken):,} of {len(result.results):,} expectations are broken.", class_="bad")
        )
        rows = [
            (_verdict(one.success), _meaning(one.expectation_config), _small(one.expectation_config))
            for one in sorted(result.results, key=lambda one: bool(one.success))
        ]  # fmt: skip
        body = joined([
            verdict,
            tag("p", f"{label_of(run[0])}, checked at {_time(run[1])} UTC.", class_="about"),
            *(section(_sentence(one.expectation_config), *_broken(one)) for one in broken),
            section("Every expectation", table(("", "what must hold", "rule"), rows, "Broken ones first")),
        ])  # fmt: skip
        return Page(result.meta.get("expectation_suite_name") or result.suite_name, body)


class IndexPage(_Renderer):
    """The first page: all results, latest first, and all suites."""

    def render(self, links: Mapping[str, Any]) -> Page:
        """The page for the links to pages of the site that Great Expectations gives."""
        results = sorted(links.get("validations_links", ()), key=lambda one: str(one["run_time"]), reverse=True)
        rows = [
            (_verdict(one["validation_success"]), link(one["filepath"], label_of(one["run_name"])),
             one["expectation_suite_name"], f"{_time(one['run_time'])} UTC")
            for one in results
        ]  # fmt: skip
        suites = sorted(
            {(one["expectation_suite_name"], one["filepath"]) for one in links.get("expectations_links", ())}
        )
        body = joined([
            tag("p", "What the audits found. Rows are published only if all of their expectations hold."),
            section("Audits", table(("verdict", "what was checked", "suite", "when"), rows, "Latest first")),
            section("What is expected", tag("ul", *(tag("li", link(where, name)) for name, where in suites))),
        ])  # fmt: skip
        return Page("Data Docs", body)


def _verdict(success: Any) -> Html:
    return tag("span", "holds" if success else "broken", class_="good" if success else "bad")


def _run(found: Any) -> tuple[str, Any]:
    """Name and time of a run; a result read from the store has them as a dictionary."""
    if isinstance(found, Mapping):
        return str(found["run_name"]), found["run_time"]
    return str(found.run_name), found.run_time


def _time(value: Any) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}" if hasattr(value, "strftime") else str(value)[:19].replace("T", " ")


def _sentence(config: Any) -> str:
    meta = config.meta or {}
    said = meta.get("meaning") or config.description or config.type.replace("_", " ").removeprefix("expect ")
    return str(said[:1].upper() + said[1:])


def _meaning(config: Any) -> Html:
    return tag("span", _sentence(config))


def _small(config: Any) -> Html:
    """The rule as Great Expectations has it, in small print for readers who know the tables."""
    kwargs = {name: value for name, value in config.kwargs.items() if name != "batch_id" and value is not None}
    rule = ", ".join(f"{name} = {_cut(value)}" for name, value in kwargs.items())
    also = [config.description, Html("<br>")] if (config.meta or {}).get("meaning") and config.description else []
    return tag("span", *also, tag("code", f"{config.type}({rule})"), class_="small")


def _broken(one: Any) -> Iterable[Html]:
    """How many rows break an expectation, and some of them."""
    found = one.result or {}
    many, of = found.get("unexpected_count"), found.get("element_count")
    if many is not None:
        yield tag("p", f"Broken by {many:,}{f' of {of:,}' if of else ''} rows.")
    if found.get("observed_value") is not None:
        yield tag("p", "Found: ", tag("code", _cut(found["observed_value"])))
    for message in _messages(one.exception_info or {}):
        yield tag("p", f"It could not be evaluated: {message}", class_="bad")
    rows = found.get("partial_unexpected_index_list") or found.get("unexpected_index_list")
    if rows and isinstance(rows[0], Mapping):
        names = list(rows[0])
        yield table(names, [[_cut(row.get(name)) for name in names] for row in rows[:_SHOWN]], "Rows that break it")
    elif values := found.get("partial_unexpected_list"):
        yield details("Values that break it", tag("ul", *(tag("li", tag("code", _cut(v))) for v in values[:_SHOWN])))
    missing = (found.get("details") or {}).get("mismatched")
    if missing:
        yield tag("p", "Different: ", tag("code", _cut(missing)))


def _messages(info: Mapping[str, Any]) -> Sequence[str]:
    """Messages of errors while an expectation was evaluated, which are given directly or by metric."""
    parts = [info, *(part for part in info.values() if isinstance(part, Mapping))]
    return [
        _cut(part["exception_message"])
        for part in parts
        if part.get("raised_exception") and part.get("exception_message")
    ]


def _cut(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"
