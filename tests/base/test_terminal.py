"""What the verbs print is safe to look at, whatever files, names and rows hold; CSV and JSON stay exact."""

from __future__ import annotations

import contextlib
import csv
import html
import io
import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from markdown_it import MarkdownIt

from chainlake.airflow.names import Defined
from chainlake.airflow.page import gated_page
from chainlake.cli.main import main
from chainlake.cli.tables import print_csv, print_json, print_table, print_vertical
from chainlake.errors import InputError
from chainlake.local.launcher import run_program
from chainlake.local.run.progress import Progress
from chainlake.paths import PROJECT, Home
from chainlake.terminal import json_visible, one_line, table_lines, visible

#: Title and clipboard of the terminal, colours, an 8-bit control, overwriting, deletion, reversed order, a tag.
NASTY = "a\x1b]0;title\x07\x1b[31mred\x9b2J\rover\x08\x7f\u202egnp.exe\u2066\U000e0041z"
NEW_LINE = "x\nok  all is well\ty"


def commands(text: str) -> set[str]:
    """Characters in ``text`` that a terminal obeys, or that change what stands beside them."""
    harmful = {c for c in text if unicodedata.category(c) in ("Cc", "Cs") or c in "\u202e\u2066\U000e0041"}
    return harmful - {"\n", "\t"}


@pytest.fixture
def odd(home: Home) -> Home:
    """A table whose column, rows and structs hold such characters."""
    rows = {"key": [NASTY, NEW_LINE], f"col{NASTY}": [1, 2], "list": [[NASTY], [NEW_LINE]]}
    write_deltalake(home.table("events", "odd"), pa.table(rows))
    return home


@pytest.mark.slow
def test_every_control_and_direction_is_shown() -> None:
    plain = {"\n", "\t", "\u00ad", "\u200c", "\u200d"}
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(char) in (
            "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
        ):  # fmt: skip
            assert (visible(char) == char) == (char in plain), hex(code)
            assert char not in one_line(char)
    assert visible("Grüße 日本 👩‍🔬 שלום\n\tx") == "Grüße 日本 👩‍🔬 שלום\n\tx"
    assert visible("\x1b[0m\r\udc80\u202e\U000e0041") == "\\x1b[0m\\r\\udc80\\u202e\\U000e0041"
    assert one_line(NEW_LINE) == "x\\nok  all is well\\ty"


def test_json_says_the_same() -> None:
    for char in map(chr, [*range(0x20), 0x7F, 0x9B, 0x2028, 0x202E, 0xFEFF, 0xD800, 0xE0041]):
        text = json_visible(json.dumps({char: [char]}, ensure_ascii=False))
        assert not commands(text) and json.loads(text) == {char: [char]}


def test_a_table_does_nothing_to_the_terminal(odd: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "SELECT * FROM events.odd"]) == 0
    said = capsys.readouterr().out
    assert not commands(said) and len(said.splitlines()) == 5 and "\\x1b[31mred\\x9b2J\\rover" in said


def test_json_and_csv_stay_exact(odd: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "SELECT key FROM events.odd", "--format", "json"]) == 0
    said = capsys.readouterr().out
    assert not commands(said) and [row["key"] for row in json.loads(said)] == [NASTY, NEW_LINE]
    assert main(["sql", "SELECT key FROM events.odd", "--format", "csv"]) == 0
    said = capsys.readouterr().out
    assert [row[0] for row in csv.reader(io.StringIO(said, newline=""))] == ["key", NASTY, NEW_LINE]


@pytest.mark.slow
def test_csv_on_a_terminal_does_nothing_to_it(odd: Home) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "jobs", "sql", "--format", "csv", "SELECT key FROM events.odd"]
    done = subprocess.run(command, stdout=theirs, stderr=theirs, cwd=PROJECT, stdin=subprocess.DEVNULL)
    os.close(theirs)
    said = os.read(ours, 100_000).decode().replace("\r\n", "\n")
    os.close(ours)
    assert done.returncode == 0 and "\\x1b[31mred" in said and not commands(said)


@pytest.mark.few(1)
@pytest.mark.parametrize("text", [NASTY, NEW_LINE])
def test_errors_name_files_and_words_harmlessly(text: str, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home.root / "files"
    folder.mkdir()
    name = text.replace("/", "") + ".jsonl"
    (folder / name).write_text('{"user": 1, "ts": "yesterday"}\n')
    pattern = "PATTERN SEQ(A a, B b) WHERE a.user = b.user WITHIN 5 min"
    for words in (
        ["match", pattern, str(folder / name), "--ts", "ts"],
        ["match", pattern, str(folder / f"absent {name}")],
        ["match", f"PATTERN {text}", str(folder / name)],
        ["sql", f"SELECT '{text}' FROM nothing.there"],
        ["sql", f"SELECT {text}"],
        ["ingest", text, "2024-01-01", "2024-01-02"],
        ["changes", text, "--since-version", "1"],
        ["retire", f"pattern/{text}"],
        ["lint", str(folder / name)],
        ["nix" + text],
    ):
        with contextlib.suppress(SystemExit):
            assert main(words) != 0
        said = capsys.readouterr()
        assert not commands(said.out + said.err), words
        assert said.err + said.out


def test_a_place_is_one_line() -> None:
    error = InputError("it cannot be read", file=f"landing/{NEW_LINE}", line=3)
    assert str(error) == "landing/x\\nok  all is well\\ty:3: it cannot be read"
    assert not commands(InputError(NASTY, hint=NASTY).summary)


def test_the_launchers_programs_are_harmless_too(capsys: pytest.CaptureFixture[str]) -> None:
    def body() -> int:
        Progress().say(f"run failed: {NASTY}")
        raise InputError(NASTY)

    assert run_program(body) == 4
    said = capsys.readouterr()
    assert "run failed: a\\x1b]0;title" in said.out and not commands(said.out + said.err)


@pytest.mark.slow
def test_progress_on_a_terminal_overwrites_its_own_line_alone(home: Home, tmp_path: Path) -> None:
    code = (
        "from chainlake.local.launcher import run_program\n"
        "from chainlake.local.run.progress import Progress\n"
        "def body():\n"
        "    progress = Progress()\n"
        f"    progress.now('one {NEW_LINE!r} \\x1b[31m')\n"
        "    progress.say('two')\n"
        "    return 0\n"
        "run_program(body)\n"
    ).replace(repr(NEW_LINE), repr(NEW_LINE)[1:-1])
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stdout=theirs, cwd=PROJECT, stdin=subprocess.DEVNULL, check=True)
    os.close(theirs)
    said = os.read(ours, 100_000).decode()
    os.close(ours)
    assert said.startswith("       one x\\nok  all is well\\ty \\x1b[31m\r ") and said.endswith("two\r\n")


def test_a_table_is_aligned_and_every_cell_is_one_line() -> None:
    lines = table_lines(("name", "rows"), [("a\nb", 7), ("c", 1234)], right={1})
    assert lines == ["name  rows", "a\\nb     7", "c     1234"]
    assert table_lines(("a", "b"), [("x", "")]) == ["a  b", "x"]
    assert table_lines(("a",), []) == ["a"]


@pytest.mark.parametrize("text", [
    "a\\\\| b", "a | b", "`a | b", "![x](http://elsewhere/x.png)", "[x](javascript:alert(1))", "<img src=x>", "a&lt;b",
    "*a* _b_ ~~c~~", "a\u202eb\x1b[31m",
])  # fmt: skip
def test_airflow_shows_what_a_definition_says_as_it_is(text: str) -> None:
    """In one cell of the table, whatever Markdown would make of it."""
    tables = ("matches",)
    rows = [Defined(text, "lab", None, text, tables), Defined("other", "lab", None, "the next", tables)]
    page = gated_page("detect", "lab", rows)
    shown = MarkdownIt("commonmark").enable("table").render(page)
    cells = re.findall(r"<td>(.*?)</td>", shown)
    plain = one_line(text)
    assert [html.unescape(cell) for cell in cells] == [plain, plain, "<code>other</code>", "the next"]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_an_output_that_lacks_a_character_ends_no_verb(encoding: str, tmp_path: Path) -> None:
    """A machine's locale is not the data's: a name in a message is spelled, and data for programs stay exact."""
    file = tmp_path / "x.csv"
    file.write_text("type,ts,k\nA,2025-01-01T10:00:00,\u00e9\nA,2025-01-01T10:00:01,\u65e5\U0001f600\n")
    env = os.environ | {"PYTHONIOENCODING": encoding}
    query = "PATTERN A a WHERE a.k != 'x' WITHIN 1 s MEASURES a.k AS k"

    def told(*words: str) -> tuple[int, str, str]:
        ran = subprocess.run([sys.executable, "-m", "chainlake", *words], env=env, capture_output=True, timeout=120)
        return ran.returncode, ran.stdout.decode(encoding), ran.stderr.decode(encoding)

    code, out, _ = told("match", query, str(file), "--format", "json")
    assert code == 0 and [row["k"] for row in json.loads(out)] == ["\u00e9", "\u65e5\U0001f600"]
    code, out, _ = told("match", query, str(file), "--format", "table")
    assert code == 0 and ("\u65e5" in out if encoding == "utf-8" else "\\u65e5\\ud83d\\ude00" in out)
    code, out, err = told("match", query, str(file), "--format", "csv")
    if encoding == "utf-8":
        assert code == 0 and "\u65e5\U0001f600" in out
    else:
        assert code == 2 and f"the output's encoding, {encoding}, has no" in err
    assert told("--help")[0] == 0


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (93.4 - 85.8, "7.6"), (182.98 - 182.97, "0.01"), (0.1 + 0.2, "0.3"),
        (-(93.4 - 85.8), "-7.6"), (4.4 - 4.7, "-0.3"), (1.1 * 1.1 * 1e9, "1210000000.0"), (3.3e-7 * 3, "9.9e-07"),
        (182.97 * 9126, "1669784.22"), (9.999999999999998, "10.0"), (1e22 / 3 * 3, "1e+22"),
        # What is no noise stays whole.
        (1 / 3, "0.3333333333333333"), (1381152660.123456, "1381152660.123456"),
        (1.000000012345679, "1.000000012345679"), (33.745678901234567, "33.74567890123457"), (5e-324, "5e-324"),
        (100000.00000001, "100000.00000001"), (18200.01 - 18200, "0.00999999999839929"), (7.6, "7.6"), (0.0, "0.0"),
        (1.7976931348623157e308, "1.7976931348623157e+308"), (-0.0, "-0.0"), (float("nan"), "nan"), (1e16, "1e+16"),
    ],
)  # fmt: skip
def test_a_table_for_people_has_numbers_without_noise(value: float, shown: str) -> None:
    assert table_lines(("x",), [(value,)])[1] == shown
    rows = [[value, {"x": value, "y": [value, None, 3, True, "a"]}]]
    looked, upright, exact = io.StringIO(), io.StringIO(), io.StringIO()
    print_table(["x", "deep"], iter(rows), looked)
    print_vertical(["x", "deep"], iter(rows), upright)
    print_csv(["x"], iter(rows), exact)
    words = looked.getvalue().splitlines()[2].split()
    assert words[0] == shown and words[2] == ("NaN" if shown == "nan" else shown) + ","
    assert upright.getvalue().splitlines()[1].split() == ["x", shown]
    assert repr(float(exact.getvalue().split()[1].split(",")[0])) == repr(value)


def test_json_has_every_digit() -> None:
    out = io.StringIO()
    print_json(["x"], iter([[93.4 - 85.8]]), out)
    assert json.loads(out.getvalue()) == [{"x": 93.4 - 85.8}] and 93.4 - 85.8 != 7.6
