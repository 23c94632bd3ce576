"""Text from data stays text in Data Docs: it changes neither the structure of a page nor what can be read on it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from chainlake.paths import Home

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pages")]

#: Texts that leave the place they stand in: an element, an attribute of either quote, a script, a markdown link.
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    '" onmouseover="alert(3)',
    "' onmouseover='alert(3)",
    "</script><script>alert(4)</script>",
    "');alert(5);//",
    "[x](javascript:alert(6)) <!-- $template ${styling} {{7*7}} &lt;b&gt;",
]


class Structure(HTMLParser):
    """Elements with the names of their attributes, in order; where links lead; the text outside of scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._script = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One more element."""
        self.elements.append((tag, *(name for name, _ in attrs)))
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        self._script = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        """Scripts do not nest."""
        self._script = False

    def handle_data(self, data: str) -> None:
        """Text, or a script."""
        (self.scripts if self._script else self.texts).append(data)


def site(home: Home, text: str) -> list[str]:
    """The pages of a site on data and definitions that say ``text`` wherever they can say something."""
    import great_expectations as gx
    import pandas as pd

    from chainlake.quality import docs

    notes = {"notes": {"format": "markdown", "content": [f"note {text}"]}}
    context = docs.memory_context()
    expect = gx.expectations
    suite = gx.ExpectationSuite(name="rows", meta=notes)
    for one in (
        expect.ExpectColumnValuesToBeInSet(column="path", value_set=["a", text], meta=notes, description=text),
        expect.ExpectColumnValuesToBeInSet(column="path", value_set=["a"]),
        expect.ExpectColumnToExist(column=f"column {text}"),
        expect.ExpectColumnValuesToNotBeNull(column=f"absent {text}"),
        expect.ExpectColumnValuesToMatchRegex(column="path", regex=".*" + "x" * 3 + "|never"),
        expect.ExpectTableColumnsToMatchSet(column_set=["path", text]),
    ):
        suite.add_expectation(one)
    rows = pd.DataFrame({"path": [text, f"a.csv {text}", "a"], f"other {text}": [1, 2, 3]})
    source = context.data_sources.add_pandas("p").add_dataframe_asset("d")
    batch = source.add_batch_definition_whole_dataframe("w").get_batch({"dataframe": rows})
    wanted = {"result_format": "COMPLETE", "unexpected_index_column_names": [f"other {text}"]}
    found = batch.validate(suite, result_format=wanted)
    docs.publish(home, [docs.Kept.of(suite, found, "batch", text)])
    return [path.read_text() for path in sorted(home.docs.rglob("*.html"))]


def installation(folder: Path) -> Home:
    return Home(folder, str(folder / "lake"), folder / "config", folder / "cache")


@pytest.fixture(scope="module")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> list[Structure]:
    """The pages where the text is a word."""
    return [Structure(page) for page in site(installation(tmp_path_factory.mktemp("harmless")), "word")]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_from_data_changes_no_page(text: str, harmless: list[Structure], tmp_path: Path) -> None:
    pages = [Structure(page) for page in site(installation(tmp_path), text)]
    assert [page.elements for page in pages] == [page.elements for page in harmless]
    assert not [link for page in pages for link in page.links if link.lower().lstrip().startswith("javascript")]
    assert [len(page.scripts) for page in pages] == [len(page.scripts) for page in harmless]
    assert not [script for page in pages for script in page.scripts if text in script]
    shown = " ".join(" ".join(text for page in pages for text in page.texts).split())
    assert f"a.csv {' '.join(text.split())}" in shown


def test_pages_load_nothing_and_speak_of_what_is_meant(harmless: list[Structure], tmp_path: Path) -> None:
    assert len(harmless) == 3 and all(len(page.elements) > 15 for page in harmless)
    assert not [link for page in harmless for link in page.links if "//" in link]
    assert not [element for page in harmless for element in page.elements if element[0] in ("script", "img")]


def test_pages_say_what_is_meant_before_they_name_columns(tmp_path: Path) -> None:
    from chainlake.quality import audit_accounting
    from chainlake.quality.audit import Audit
    from tests.quality.test_accounting_gate import FILE

    home = installation(tmp_path)
    audit = Audit(home)
    assert audit_accounting(audit, [{**FILE, "rows_raw": 3}], []) is not None
    audit.build_docs()
    (page,) = (home.docs / "validations").rglob("*.html")
    words = " ".join(Structure(page.read_text()).texts)
    assert words.index("Every row of a file is either used or in quarantine") < words.index("rows_unaccounted")
    assert "1 of " in words and "expectations are broken" in words and "Rows that break it" in words
    index = " ".join(Structure((home.docs / "index.html").read_text()).texts)
    assert "broken" in index and "accounting.files" in index


def test_pages_of_an_earlier_version_are_written_anew_once(tmp_path: Path) -> None:
    home = installation(tmp_path)
    site(home, "first")
    page = next(path for path in home.docs.rglob("*.html") if "first" in str(path))
    page.write_text("<script>old</script>")
    site(home, "second")
    assert page.read_text() == "<script>old</script>"
    next((home.docs / ".store").glob("pages-*")).unlink()
    site(home, "third")
    assert "<script>old</script>" not in page.read_text()


@pytest.mark.parametrize("label", ["models.zone_events of road_queue of 2025-10-01", "ranked.a__b of c_ of x"])
def test_what_was_looked_at_is_named_as_its_tables_are(label: str) -> None:
    from chainlake.quality import docs

    assert docs.label_of(f"{docs._file_name(label)}-1a2b3c4d") == label
