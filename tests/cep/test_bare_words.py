"""Bare words in a pattern's front matter: the text that was typed, or an error; never silently something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainlake.cep.language.front_matter import read_front_matter
from chainlake.cep.language.source_text import SourceText
from chainlake.cli.main import main
from chainlake.errors import DefinitionError

QUERY = "PATTERN SEQ(Bar a, Z z)\nWHERE a.ticker IN mine\nWITHIN 10 min\n"


def front(text: str):
    return read_front_matter(SourceText(f"---\n{text}\n---\n{QUERY}", "x.sase"))[0]


@pytest.mark.parametrize("word", ["ON", "NO", "yes", "TRUE", "False", "y", "NULL", "2024-03-01", "Null", "a:b"])
def test_a_bare_word_of_a_set_is_the_text_that_was_typed(word: str) -> None:
    assert front(f"sets: {{mine: [{word}, IBM]}}").params["mine"] == (word, "IBM")
    assert front(f"sets:\n  mine:\n  - {word}").params["mine"] == (word,)


@pytest.mark.parametrize(
    "word", ["007", "0o7", "0x1F", "1_000", "12:30", ".5", "5.", "+5", "1e3", "1.50", "5.0e0", "-0", ".inf", ".nan"]
)
def test_a_word_of_a_set_that_could_be_a_number_is_an_error(word: str) -> None:
    for text in (f"sets: {{mine: [{word}]}}", f"sets: {{mine: [{word}, IBM]}}", f"params: {{mine: [{word}]}}"):
        with pytest.raises(DefinitionError) as caught:
            front(text)
        error = caught.value
        assert word in f"{error.what} {error.hint}" and "in quotes" in (error.hint or "") and error.line == 2
    assert front(f"sets: {{mine: ['{word}', IBM]}}").params["mine"] == (word, "IBM")


@pytest.mark.parametrize("word", ["null", "~", ""])
def test_nothing_in_a_set_is_an_error(word: str) -> None:
    with pytest.raises(DefinitionError, match="neither a number nor a string") as caught:
        front(f"sets:\n  mine:\n  - {word}\n  - IBM")
    assert "in quotes" in (caught.value.hint or "")


@pytest.mark.parametrize("items", ["5, IBM", "IBM, 5", "true, IBM", "0.5, '0.7'", "true, 1"])
def test_a_set_of_several_kinds_is_an_error(items: str) -> None:
    with pytest.raises(DefinitionError, match="mine holds") as caught:
        front(f"sets: {{mine: [{items}]}}")
    assert "quote those that are strings" in (caught.value.hint or "")


def test_numbers_and_switches_stay_what_they_are() -> None:
    found = front("sets: {a: [5, -0.5, 12345678901], b: [true, false]}\nparams: {c: 1e-3, d: 1.50, e: true, h: 2 min}")
    assert found.params == {
        "a": (5, -0.5, 12345678901), "b": (True, False), "c": 0.001, "d": 1.5, "e": True, "h": "2 min",
    }  # fmt: skip


@pytest.mark.parametrize(
    "word", [".5", "+5", "007", "1_000", "12:30", "0x1F", "yes", "No", "ON", "off", "TRUE", "False"]
)
def test_a_parameter_that_can_be_read_in_two_ways_is_an_error(word: str) -> None:
    with pytest.raises(DefinitionError, match="can be read as") as caught:
        front(f"params: {{mine: {word}}}")
    assert f"'{word}' in quotes" in (caught.value.hint or "")
    assert front(f"params: {{mine: '{word}'}}").params == {"mine": word}


def test_a_set_finds_what_its_words_in_the_query_find(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = tmp_path / "tickers.csv"
    tickers = ["ON", "NO", "TRUE", "IBM", "OFF"]
    lines = [f"{n},Bar,2024-03-01T10:0{n}:00Z,{ticker}" for n, ticker in enumerate(tickers)]
    events.write_text("\n".join(["id,type,ts,ticker", *lines, "9,Z,2024-03-01T10:09:00Z,IBM", ""]))
    pattern = tmp_path / "mine.sase"
    pattern.write_text(f"---\nsets: {{mine: [ON, NO, TRUE, IBM]}}\n---\n{QUERY}")
    found = []
    for what in (str(pattern), QUERY.replace("mine", "{ON, NO, 'TRUE', IBM}")):
        assert main(["match", what, str(events)]) == 0
        found.append([json.loads(line) for line in capsys.readouterr().out.splitlines()])
    assert found[0] == found[1] == [{"a": n, "z": 9} for n in range(4)]
