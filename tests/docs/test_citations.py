"""What code and pages cite can be opened: pages, their sections, and no document that is not in the repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("jobs", "dags", "tests", "benchmarks", "schemas", "expectations")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

#: Places whose comments still cite documents that nobody can open. Where one is done, its line goes.
STILL_TO_DO: tuple[str, ...] = ()

CITED = re.compile(r"\bdocs/([\w/.-]+\.md)(?:#([\w-]+))?")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)")
#: Words that name a document of its authors: the design, a specification by section, a list of errata, a style guide.
NOWHERE = re.compile(
    r"\b[Dd]esign(?:,| |:)? ?§|(?<!`)\bdesign: (?!\{|zones)|\(design\b|\(spec [a-z]|\bspec(?:ification)? (?:``|\d)"
    r"|\bthe spec\b|(?<!/)\btables\.md, [A-Z]|\bE\d{2}\)|\(E\d|\bthe house\b"
)


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """All anchors of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return frozenset(slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE))


def code_files() -> Iterator[Path]:
    """Sources that may cite a page; the package's links to ``schemas`` and ``expectations`` are not followed."""
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*")):
            inside = path.relative_to(ROOT).as_posix()
            linked = inside.startswith(("jobs/chainlake/schemas", "jobs/chainlake/expectations"))
            if path.suffix in {".py", ".yaml", ".sase", ".json"} and path.is_file() and not linked:
                if path != Path(__file__):
                    yield path


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """``file:line`` and text of each line."""
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        yield f"{path.relative_to(ROOT)}:{number}", line


def unopenable(place: str, page: Path, anchor: str | None) -> list[str]:
    """What is wrong with a citation of a page, and of a section of it."""
    if not page.exists():
        return [f"{place} cites {page}, which does not exist"]
    if anchor and page.suffix == ".md" and anchor not in anchors(page):
        return [f"{place} cites a section {anchor} that {page.relative_to(ROOT)} does not have"]
    return []


def still_to_do(path: Path) -> bool:
    return any(path.is_relative_to(ROOT / place) for place in STILL_TO_DO)


@pytest.mark.slow
def test_pages_that_code_cites_exist_with_their_sections() -> None:
    wrong = [
        problem
        for path in code_files()
        for place, line in lines(path)
        for name, anchor in CITED.findall(line)
        for problem in unopenable(place, ROOT / "docs" / name, anchor)
    ]
    assert not wrong, "\n".join(wrong)


def test_links_between_pages_lead_somewhere() -> None:
    wrong = [
        problem
        for page in PAGES
        for place, line in lines(page)
        for target, anchor in LINK.findall(line)
        for problem in unopenable(place, (page.parent / target).resolve() if target else page, anchor)
    ]
    assert not wrong, "\n".join(wrong)


def test_files_that_pages_name_exist() -> None:
    places = (ROOT, ROOT / "jobs" / "chainlake", ROOT / "jobs" / "chainlake" / "cep", ROOT / "tests")
    wrong = [
        f"{place} names {name}, which does not exist"
        for page in PAGES
        for place, line in lines(page)
        for name in re.findall(r"`([\w-]+/[\w/.-]+\.(?:py|json|toml))`", line)
        if not any((folder / name).exists() for folder in places)
    ]
    assert not wrong, "\n".join(wrong)


def map_of_places() -> str:
    """The tables of questions and places."""
    return (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Where to look")[2]


def test_every_row_of_the_tables_of_places_names_files_by_whole_paths() -> None:
    """A path below the package, or below the project; a name alone could be a file of any room."""
    rows = re.findall(r"^\| (?!question)(.*) \| (.*) \|$", map_of_places(), re.MULTILINE)
    assert len(rows) > 80 and len({question for question, _ in rows}) == len(rows)
    for question, place in rows:
        named = re.findall(r"`([\w/.-]+(?:\.\w+|/))`", place)
        files = [name for name in named if name.endswith((".py", ".json", ".js", ".css", "/"))]
        assert files, question
        for name in files:
            assert any((folder / name).exists() for folder in (ROOT, ROOT / "jobs" / "chainlake")), (question, name)


def test_names_that_the_table_of_places_gives_are_there() -> None:
    """`NAME` in `file.py`: the file defines it."""
    table = map_of_places()
    given = re.findall(r"`([\w.…]+)` in `([\w/]+\.py)`", table)
    assert len(given) > 25
    places = (ROOT, ROOT / "jobs" / "chainlake")
    for names, file in given:
        text = next(path for folder in places if (path := folder / file).exists()).read_text(encoding="utf-8")
        for name in names.split("."):
            word = name.replace("…", "\\w+")
            assert re.search(rf"^ *(?:def|class) {word}\b|^ *{word}\b[^=\n]*=", text, re.MULTILINE), (name, file)


def test_nothing_cites_a_document_that_is_not_here() -> None:
    wrong = [
        f"{place}: {line.strip()}"
        for path in [*(path for path in code_files() if not still_to_do(path)), *PAGES]
        for place, line in lines(path)
        if NOWHERE.search(line)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_page_is_linked_from_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    named = {target for target, _ in LINK.findall(index)}
    assert {path.name for path in ROOT.glob("docs/*.md")} - {"README.md"} <= named
    decisions = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    assert {path.name for path in ROOT.glob("docs/decisions/0*.md")} <= {t for t, _ in LINK.findall(decisions)}


@pytest.mark.parametrize(
    "text",
    [
        "(design §4)",
        'design §3, "Files"',
        "the matches of spec 1.8",
        "(spec ``pattern-detection`` 6.2)",
        "is lost (E39).",
        "as in design: chained days",
    ],
)
def test_a_citation_of_something_absent_is_seen(text: str) -> None:
    assert NOWHERE.search(text)


@pytest.mark.parametrize("text", ["zones of `design: hierarchy`", "design: {facets: 4}", "`tables.md`, the index"])
def test_a_key_of_a_model_is_not_taken_for_a_citation(text: str) -> None:
    assert not NOWHERE.search(text)
