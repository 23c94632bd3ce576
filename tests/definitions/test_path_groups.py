"""Groups of a path that cannot match what they must be: told when the definition is read, and only then."""

from __future__ import annotations

import itertools
import random
import re
from math import inf
from pathlib import Path

import pytest

from chainlake.definitions.formats.path_groups import digits_of_group
from chainlake.definitions.source import Source, load_source
from chainlake.errors import DefinitionError
from chainlake.ingest.path_fields import path_fields

YAML = """\
key: k
type: A
attributes: {v: {type: double}, n: {type: long}, at: {type: timestamp}, s: {type: string}}
path: PATH
formats:
  - time: {column: ts}
    map: {MAP}
"""


def source(folder: Path, path: str, mapped: str = "v: V") -> Source:
    file = folder / "x.yaml"
    file.write_text(YAML.replace("PATH", path).replace("MAP", mapped))
    return load_source(file)


NO_REVISIONS = [
    "[a-z]+", "", r"\D+", r"v\d+", "(?:a|b|c)?", r"r\d|s\d", r"[^0-9]*", r"\s*", r"\.\d+", r"\d+-\d+", "(?:final){0,1}",
    r"(?=\d)", r"\W{2}", r"(?i:V)(?:\d\d)?", "[!-/]+", r"(?>rev)\d", r"\d+(?P<x>_)",
]  # fmt: skip
#: Groups, and how many digits they have.
NO_DATES = [
    (r"\d{6}", "6"), ("[a-z]+", "0"), (r"\d{4}-\d\d", "6"), (r"\d{14}", "14"), (r"\d{1,7}", "1 to 7"),
    (r"20\d{7}\w*", "9 or more"), (r"(?:\d\d){2,3}", "4 to 6"),
]  # fmt: skip
#: The same with a format, and how many it needs.
NOT_OF_THE_FORMAT = [
    (r"\d{8}", "%d%m%y", "8", "4 to 6"), (r"[A-Z]\w\w", "%d%b%Y", "0 to 2", "5 to 6"),
    (r"\d{8}", "%Y%j", "8", "5 to 7"), (r"\d", "%Y-%m-%d", "1", "6 to 8"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "what", "hint"),
    [
        *[
            (rf"'x_(?P<date>\d{{8}})_(?P<revision>{group})'", "'revision' cannot match digits alone", r"<revision>\d+)")
            for group in NO_REVISIONS
        ],
        *[
            (f"'x_(?P<date>{group})'", f"'date' has {has} digits, but a date YYYYMMDD has 8", r"(?P<date>\d{8})")
            for group, has in NO_DATES
        ],
        *[
            (f"{{pattern: '(?P<date>{group})', date_format: '{form}'}}", f"'date' has {has} digits, .* has {needs}", "")
            for group, form, has, needs in NOT_OF_THE_FORMAT
        ],
        *[
            (f"'(?P<key>{group})_(?P<date>.*)'", "'key' can match only an empty string", "(?P<key>[A-Z]+)")
            for group in ("", "(?:)*", "^", "x{0}")
        ],
    ],
)
def test_a_field_that_cannot_be_what_it_must_be_is_an_error(tmp_path: Path, path: str, what: str, hint: str) -> None:
    with pytest.raises(DefinitionError, match=what) as found:
        source(tmp_path, path)
    error = found.value
    assert str(error.file) == str(tmp_path / "x.yaml")
    assert error.line == 4 and error.key in ("path", "path.pattern") and hint in (error.hint or "")


@pytest.mark.parametrize(("name", "kind"), [("v", "double"), ("n", "long"), ("at", "timestamp")])
def test_a_number_of_a_path_needs_digits(tmp_path: Path, name: str, kind: str) -> None:
    with pytest.raises(
        DefinitionError, match=f"'{name}' is a {kind}, but the path field 'size' cannot match digits"
    ) as found:
        source(tmp_path, "'x_(?P<size>[a-z]+)'", f"{name}: {{path: size}}")
    assert found.value.line == 7 and found.value.key is not None and found.value.key.endswith(f"map.{name}")
    source(tmp_path, r"'x_(?P<size>\w+)'", f"{name}: {{path: size}}")
    source(tmp_path, "'x_(?P<size>[a-z]+)'", "s: {path: size}")


@pytest.mark.parametrize(
    ("path", "name", "revision"),
    [
        (r"'x_(?P<date>\d{8})(?:_r(?P<revision>\d+))?'", "x_20250101_r3", 3),
        ("'x_(?P<date>.*)_r(?P<revision>.*)'", "x_2025-01-01_r7", 7),
        (r"'x_(?P<date>\d{4}-\d\d-\d\d)_(?P<revision>[a-z]*\d*)'", "x_2025-01-01_12", 12),
        (r"'x_(?P<date>\S+)_(?P<revision>[^a-z]+)'", "x_2025-01-01_5", 5),
        (r"'x_(?P<date>20\d{6})_(?P<revision>(?:final|\d))'", "x_20250101_5", 5),
        (r"'x_(?P<date>20\d{6})_(?P<revision>(?:v\d|)\d?)'", "x_20250101_5", 5),
        (r"'x_(?P<date>(?P<year>\d{4})(?P<rest>\d{4}))_(?P<revision>[5-7]?)'", "x_20250101_6", 6),
        (r"'(?P<revision>(?<!a)[+--0-9]+)_(?P<date>\w+)'", "4_20250101", 4),
        (r"'(\d)_(?P<revision>\1)_(?P<date>\d{8})'", "4_4_20250101", 4),
        (r"'(?P<revision>(?>\d+))_(?P<date>\d{8})'", "4_20250101", 4),
        (r"'(a)?(?P<revision>(?(1)b|\d))_(?P<date>\d{8})'", "4_20250101", 4),
        ("{pattern: '(?P<date>[a-z0-9]+)', date_format: '%a%d%b%Y'}", "wed01jan2025", 0),
        (r"{pattern: '(?P<date>\d{6})', date_format: '%d%m%y'}", "010125", 0),
    ],
)
def test_a_field_that_can_be_what_it_must_be_is_none(tmp_path: Path, path: str, name: str, revision: int) -> None:
    found = path_fields(source(tmp_path, path), name)
    assert (str(found.file_date), found.revision, found.problem) == ("2025-01-01", revision, "")


@pytest.mark.slow
def test_the_digits_of_random_expressions_hold_for_all_texts_that_they_match() -> None:
    pick = random.Random(3)
    texts = ["".join(signs) for size in range(5) for signs in itertools.product("0a-", repeat=size)]
    tight = 0
    for _ in range(1500):
        pattern = re.compile(f"(?P<g>{_expression(pick, 3)})")
        digits = digits_of_group(pattern, "g")
        matched = [text for text in texts if pattern.fullmatch(text)]
        numbers = [text.count("0") for text in matched]
        assert all(digits.least <= number <= digits.most for number in numbers), pattern.pattern
        assert all(len(text) <= digits.longest for text in matched), pattern.pattern
        plain = [len(text) for text in matched if not text.strip("0")]
        assert not plain or (digits.alone is not None and max(plain) <= digits.alone), pattern.pattern
        tight += bool(digits.alone) == any(plain) and digits.most != inf
    assert tight > 500


def _expression(pick: random.Random, depth: int) -> str:
    if not depth or pick.random() < 0.2:
        return pick.choice(
            ["0", "a", "-", r"\d", r"\D", r"\w", ".", "[0a]", "[^0]", "[--0]", "[^a-z]", "", "^", "(?=0)"]
        )
    one, two = (_expression(pick, depth - 1) for _ in range(2))
    most = pick.choice(["{0}", "?", "*", "+", "{2}", "{1,3}", "*?", "*+"])
    return pick.choice([one + two, f"(?:{one}|{two})", f"(?:{one}){most}", f"(?>{one}){two}"])
