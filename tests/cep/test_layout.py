"""The layout of patterns keeps meaning and comments, and the command ``lint`` prints findings and writes it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainlake.cep.language.layout import WIDTH
from chainlake.cep.lint.report import laid_out, lint
from chainlake.cep.pattern import compile_pattern
from chainlake.cli.main import main
from chainlake.errors import DefinitionError
from tests.cep.strategies import queries, text_of
from tests.cep.test_lint import HEAD, PAGE, SHIPPED

MESSY = """# head

# more
pattern or(seq(A a,B b) where a.x==b.x and
 a.y>-1, # first
  SEQ(C c, # see
   D+ d)
   where c.x <> d.x # why
   and # note
   avg(d.y)=1
   # own
   AND c.z ∈ {red, 'b # lue'}and d.x>2*-(c.x+-1))
WHERE TRUE and not(FALSE   or 1=1)


WITHIN 5 min # end
# bye"""

NEAT = """# head

# more
PATTERN OR(SEQ(A a, B b) WHERE a.x = b.x
      AND a.y > -1,  # first
  SEQ(C c,  # see
    D+ d)
    WHERE c.x != d.x  # why
      AND  # note
        AVG(d.y) = 1
      # own
      AND c.z IN {red, 'b # lue'} AND d.x > 2 * -(c.x + -1))
WHERE TRUE AND NOT (FALSE OR 1 = 1)

WITHIN 5 min  # end
# bye
"""


def test_layout_of_a_messy_query() -> None:
    assert laid_out(MESSY) == NEAT == laid_out(NEAT)


def test_long_lines_break_at_their_outermost_places() -> None:
    where = " AND ".join(f"(a.x{i} > 1 OR b.x{i} < 2)" for i in range(6))
    text = laid_out(f"PATTERN OR(SEQ(A a, B b) WHERE {where}, SEQ(A a, B b) WHERE a.x = b.x) WITHIN 1 s")
    assert text.splitlines()[:5] == [
        "PATTERN OR(", "  SEQ(A a, B b)", "    WHERE (a.x0 > 1 OR b.x0 < 2)", "      AND (a.x1 > 1 OR b.x1 < 2)",
        "      AND (a.x2 > 1 OR b.x2 < 2)",
    ]  # fmt: skip
    assert text.splitlines()[-3:] == ["  SEQ(A a, B b) WHERE a.x = b.x", ")", "WITHIN 1 s"]
    assert max(map(len, text.splitlines())) <= WIDTH


def test_front_matter_and_the_authors_lines_stay() -> None:
    text = HEAD + "PATTERN SEQ(Open a, Heat b)\nWHERE a.x = b.x AND a.n = 1\n  AND b.n = 2\nWITHIN 1 s\n"
    assert laid_out(text) == text
    odd = "# c\n---\nsource:   doors   # why\noutput: [ n ]\n---\n\n\nPATTERN Open a WITHIN 1 s"
    assert laid_out(odd).startswith(odd[: odd.index("\n\n\nPATTERN")] + "\n")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_patterns_are_laid_out_and_without_errors(path: Path) -> None:
    text = path.read_text()
    assert laid_out(text) == text
    assert lint(text, name=path.stem).errors == ()


@pytest.mark.slow
def test_examples_of_the_language_page_are_without_errors() -> None:
    blocks = [block.split("```")[0] for block in PAGE.read_text().split("```pattern\n")[1:]]
    assert len(blocks) >= 4
    for block in blocks:
        assert lint(block).errors == ()
        assert laid_out(laid_out(block)) == laid_out(block)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(queries(), st.integers(0, 2**32))
def test_layout_keeps_meaning_and_comments_and_is_its_own_layout(query: tuple, seed: int) -> None:
    """Random patterns with line breaks, blanks and comments thrown in between the tokens."""
    from chainlake.cep.language.parsing.lexer import pieces

    draw = random.Random(seed)
    noise = ["", "", " ", "\n", "\n\n  ", " # note\n", "\n# own\n  "]
    text = "".join(
        (piece.text if piece.kind != "space" else " ") + draw.choice(noise) for piece in pieces(f"{text_of(query)} s")
    )
    try:
        before = compile_pattern(text)
    except DefinitionError:
        return  # such as an aggregate over a name that another branch repeats
    neat = laid_out(text)
    assert laid_out(neat) == neat
    assert compile_pattern(neat).definition_hash == before.definition_hash
    assert neat.count("#") == text.count("#")
    assert all(line == line.rstrip() for line in neat.splitlines())


# ---- the command


def test_command_prints_findings_and_exits_with_3_only_for_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.sase", tmp_path / "bad.sase"
    good.write_text("---\nsource: stock\ndescription: d\n---\nPATTERN SEQ(Bar a, Bar b)\nWITHIN 2 d\n")
    bad.write_text("---\nsource: stock\n---\nPATTERN SEQ(Bar a) WHERE a.klose > 1 AND a.open > 'x' WITHIN 1\n")
    assert main(["lint", str(good)]) == 0
    out = capsys.readouterr().out
    assert f"warning: {good}:5:20: b shares no condition" in out and "larger than a day" in out
    assert out.endswith("1 definition: 0 errors, 2 warnings\n")
    assert main(["lint", str(good), str(bad)]) == 3
    out = capsys.readouterr().out
    assert f"error: {bad}:4:26: the events have no attribute klose\n    PATTERN" in out
    assert "hint: Did you mean close?" in out and "2 definitions: 3 errors, 2 warnings" in out
    assert main(["lint", str(tmp_path / "none.sase")]) == 2
    (tmp_path / "latin.sase").write_bytes(b"# \xe9\n")
    assert main(["lint", str(tmp_path / "latin.sase")]) == 3


def test_fix_writes_the_layout_into_good_files_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    messy, bad = tmp_path / "messy.sase", tmp_path / "bad.sase"
    messy.write_text(MESSY)
    messy.chmod(0o640)
    bad.write_text("pattern A a within 1")
    assert main(["lint", "--fix", str(messy), str(bad)]) == 3
    assert messy.read_text() == NEAT and bad.read_text() == "pattern A a within 1"
    assert messy.stat().st_mode & 0o777 == 0o640
    assert capsys.readouterr().out.endswith("1 file formatted\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.sase", "messy.sase"]
    assert main(["lint", "--fix", str(messy)]) == 0
    assert capsys.readouterr().out.endswith("0 files formatted\n")


@pytest.mark.parametrize("suffix", ["sase", "yaml"])
def test_a_file_that_cannot_be_read_hides_none_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    wide, none, folder = (tmp_path / f"{name}.{suffix}" for name in ("wide", "none", "folder"))
    wide.write_bytes("PATTERN A a WITHIN 1 s".encode("utf-16"))
    folder.mkdir()
    bad, messy = tmp_path / "bad.sase", tmp_path / "messy.sase"
    bad.write_text("PATTERN A a WITHIN 1")
    messy.write_text(MESSY)
    assert main(["lint", "--fix", *map(str, (wide, none, folder, bad, messy))]) == 3
    out = capsys.readouterr().out
    assert f"error: {wide}:1: is not UTF-8 text" in out
    assert f"error: {none}: there is no such file" in out and f"error: {folder}: this is not a file" in out
    assert f"error: {bad}:1:13: the window needs a unit" in out and messy.read_text() == NEAT
    assert "\n5 definitions: " in out and out.endswith(", 1 file formatted\n")
    assert main(["lint", str(none), str(folder)]) == 2
    assert capsys.readouterr().out.endswith("2 definitions: 2 errors, 0 warnings\n")
    assert main(["lint", str(wide)]) == 3
    assert main(["lint", str(none), str(messy.with_name("x" * 300))]) == 2


@pytest.mark.parametrize("name", ["a b", "été", "a.b", "_a", "x" * 101, "all", "ALL"])
def test_a_name_that_no_table_can_have_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = tmp_path / f"{name}.sase"
    file.write_text("---\nsource: stock\ndescription: d\n---\nPATTERN Bar a\nWHERE a.close > 1\nWITHIN 1 s\n")
    assert main(["lint", str(file)]) == 3
    out = capsys.readouterr().out
    assert "cannot be the name of a pattern" in out or "a pattern cannot be named all" in out
    assert out.endswith("1 definition: 1 error, 0 warnings\n")
    good = file.rename(tmp_path / "a-b_1.sase")
    assert main(["lint", str(good)]) == 0
