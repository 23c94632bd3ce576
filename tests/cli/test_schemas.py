"""JSON schemas and the grammar say what the readers say: keys, values and words, of every section that there is."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from chainlake.cep.language import functions
from chainlake.cep.language.ast import AGGREGATES
from chainlake.cep.language.declared import examples
from chainlake.cep.language.declared import read as functions_read
from chainlake.cep.language.front_matter import read_front_matter
from chainlake.cep.language.parsing import lexer
from chainlake.cep.language.source_text import SourceText
from chainlake.cli.main import main
from chainlake.definitions import alerting
from chainlake.definitions.formats import mappings
from chainlake.definitions.source import load_source
from chainlake.definitions.yaml_lines import Section, read_yaml
from chainlake.errors import DefinitionError
from chainlake.model_change.days.definitions import load_definition
from chainlake.paths import PROJECT
from chainlake.starter.editors.files import EDITORS
from chainlake.starter.editors.grammar import grammar

READERS = {"source": load_source, "model": load_definition}
#: Definitions that have every section between them.
RICH = {
    "source": [
        """
description: 7
key: ticker
type: {column: kind, map: {T: Trade, Q: Quote}}
attributes: {price: {type: double, min: 0, max: 10, required: true, unit: USD}, mode: {type: string}}
identity: multiset
delivery: disjoint
path: {pattern: '(?P<date>\\d{6})_r(?P<revision>\\d+)', date_format: '%d%m%y'}
replaces: [file_date]
expect: ['a_{date}*']
lag: 12 h
links: follow
derived: {last5: 'history(price, 5, 10 min)'}
formats:
  - name: one
    glob: '*'
    delimiter: ;
    null: [NO, 1.50]
    short_rows: fill
    time: {column: [day, ts], format: '%Y-%m-%d %H:%M', earliest: 2000-01-01, around: 48 h}
    map:
      price: {column: Px, scale: 0.01, offset: 1, round: 2, sentinels: [-1, {value: 0, when: {price: '< 1'}}]}
      mode: {constant: 7}
      type: {column: kind, case: upper}
    optional: [Px]
""",
        """
key: channel
type: Reading
attributes: {value: {type: long}}
path: 'a_(?P<date>\\d{8})'
formats:
  - kind: csv
    columns: [ts, R1, R2]
    unpivot: {columns: {R1: left}, into: value}
    time: {column: ts, format: epoch_ms}
""",
    ],
    "model": [
        """
kind: model
source: road
start: 2025-01-01
groups:
  north: [a, 7, {name: n, keys: [b, c], from: 2025-01-02, to: 2025-02-01}]
  south: [{keys: [d], dates: [{from: 2025-01-01}]}]
response: {name: r, expression: Log(y)}
features:
  - x
  - {of: x, key: SPY, transform: [log, lag 2]}
  - polynomial: {of: p, degree: 2, scale: [-1, 1], range: [0, 5]}
round: {length: 5 min, aggregate: mean, min_nodes: 1}
window: {sliding: 30}
eps: {share: 0.5}
gls: {phi: 0.5}
ridge: 1
session_gap: 2 h
on_gap: reset
per_baseline: true
""",
        """
kind: threshold
source: road
start: 2025-01-01
nodes: [a, b]
value: {of: y}
threshold: 40
weight: flow
round: {length: 5 min}
alerts: {webhook: $HOOK, mute: ['22:00-06:00'], withdrawn: false}
""",
        """
kind: safe_zones
source: road
start: 2025-01-01
nodes: [a, b]
values: [x, {of: y, transform: log}]
region:
  half_planes: [{normal: [1, 0], below: 4, name: high}, {normal: [0, -1], below: 3}]
design: {rounds: 20, every: 3, method: auto}
round: {length: 5 min}
""",
        """
kind: safe_zones
source: road
start: 2025-01-01
nodes: [a, b]
values: [x]
region: {box: [[null, 4]]}
round: {length: 5 min}
""",
        """
kind: shared_learning
source: road
start: 2025-01-01
groups: {north: [a, b]}
response: y
features: [x]
loss: huber
learning_rate: 0.1
penalty: 0.01
sync: {dynamic: 0.5, every: 4}
round: {length: 5 min}
""",
        """
kind: latent_faults
source: road
start: 2025-01-01
nodes: [a, b, c]
counters: [x, y, z]
window: {sliding: 30}
alpha: 0.01
sketch: {dimensions: 2, seed: 3}
normalise: {low: 0.9, high: 1.1}
round: {length: 5 min}
""",
    ],
}


def checked(kind: str, data: Any) -> list[str]:
    """What the schema has against a definition."""
    validator = jsonschema.Draft202012Validator(EDITORS[kind]())
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in validator.iter_errors(data)]


def write(folder: Path, text: str) -> Path:
    file = folder / "mine.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("kind", ["source", "model", "pattern"])
def test_the_schemas_are_schemas(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", kind]) == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(capsys.readouterr().out))


def shipped(kind: str) -> Iterator[tuple[Path, Any]]:
    for file in sorted((PROJECT / "dags" / "config" / f"{kind}s").glob("*.*")):
        text = file.read_text()
        yield file, read_yaml(text.split("---\n", 2)[1] if kind == "pattern" else text).data


@pytest.mark.parametrize("kind", ["source", "model", "pattern"])
def test_what_is_shipped_fits(kind: str) -> None:
    for file, data in shipped(kind):
        assert checked(kind, data) == [], file
    for text in RICH.get(kind, []):
        assert checked(kind, read_yaml(text).data) == []


def subschemas(schema: Any, place: tuple[str | int, ...], data: Any) -> list[Any]:
    """The parts of a schema that speak of a place of ``data``."""
    if "if" in schema:
        asked = schema["if"]["properties"]["kind"]["const"]
        return subschemas(schema["then" if data.get("kind") == asked else "else"], place, data)
    if "anyOf" in schema:
        return [part for way in schema["anyOf"] for part in subschemas(way, place, data)]
    ways = [schema]
    if not place:
        return ways
    found: list[Any] = []
    for way in ways:
        if isinstance(place[0], int):
            part = way.get("items")
        else:
            part = way.get("properties", {}).get(place[0]) or way.get("additionalProperties") or None
        if isinstance(part, dict):
            found += subschemas(part, place[1:], data)
    return found


def test_every_section_has_the_keys_of_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look-up ``only`` and ``choice`` of the readers is met, and the schema has the same words at its place."""
    met: list[tuple[tuple[str | int, ...], frozenset[str], str | None]] = []
    lines: set[tuple[str, int]] = set()
    only, choice = Section.only, Section.choice

    def told_only(self: Section, allowed: Any) -> None:
        names = tuple(allowed)
        frame = sys._getframe(1)
        lines.add((Path(frame.f_code.co_filename).name, frame.f_lineno))
        met.append((self._place, frozenset(names), None))
        only(self, names)

    def told_choice(self: Section, key: str, allowed: Any, default: Any = None) -> str:
        met.append((self._place, frozenset(allowed), key))
        return choice(self, key, allowed, default)

    monkeypatch.setattr(Section, "only", told_only)
    monkeypatch.setattr(Section, "choice", told_choice)
    for kind, reader in READERS.items():
        for text in RICH[kind]:
            met.clear()
            reader(write(tmp_path, text))
            data = read_yaml(text).data
            for place, words, key in met:
                parts = subschemas(EDITORS[kind](), place, data)
                if key is None:
                    # Where there are several forms of a mapping, the reader knows the keys of all of them.
                    forms = [part["properties"].keys() for part in parts if "properties" in part]
                    assert words in (*forms, frozenset().union(*forms)), (kind, place, words)
                else:
                    values = [part["properties"][key] for part in parts if key in part.get("properties", {})]
                    # A choice among the kinds of monitors is made twice: among all, and in the reader of one.
                    assert any(words <= set(one.get("enum", ())) for one in values), (kind, place, key, words)
                    assert key == "kind" or any(words == set(one["enum"]) for one in values), (kind, place, key)
    package = PROJECT / "jobs" / "chainlake"
    files = [*(package / "definitions").rglob("*.py"), *(package / "model_change").rglob("*.py")]
    every = {
        (file.name, number)
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if re.search(r"\.only\(\(?", line) and "def only" not in line
    }
    assert lines == every, f"add to RICH what has these: {sorted(every - lines)}"


def test_the_front_matter_has_the_keys_of_its_reader() -> None:
    schema = EDITORS["pattern"]()["properties"]
    with pytest.raises(DefinitionError) as caught:
        read_front_matter(SourceText("---\nzzzzzz: 1\n---\nPATTERN A a WITHIN 1 s"))
    assert set(str(caught.value.hint).removeprefix("Known here: ").removesuffix(".").split(", ")) == set(schema)
    with pytest.raises(DefinitionError) as caught:
        read_front_matter(SourceText("---\nlimits: {zzzzzz: 1}\n---\nPATTERN A a WITHIN 1 s"))
    known = str(caught.value.hint).removeprefix("Known here: ").removesuffix(".").split(", ")
    assert set(known) == set(schema["limits"]["properties"])
    assert set(schema["functions"]["additionalProperties"]["properties"]) == set(functions_read.KEYS)
    assert set(schema["tests"]["items"]["properties"]) == set(examples.KEYS)
    for one in (schema, EDITORS["model"]()["then"]["properties"]):
        assert set(one["alerts"]["properties"]) == set(alerting.KEYS)


def test_a_sentinel_has_the_keys_of_its_reader() -> None:
    form = EDITORS["source"]()["properties"]["formats"]["items"]["properties"]
    mapping = form["map"]["additionalProperties"]["anyOf"][1]["properties"]
    assert set(mapping["sentinels"]["items"]["anyOf"][1]["properties"]) == set(mappings.SENTINEL_KEYS)


@pytest.mark.parametrize(
    ("kind", "edit"),
    [
        ("source", ("key: ticker", "keys: ticker")),
        ("source", ("identity: multiset", "identity: some")),
        ("source", ("type: double", "type: float")),
        ("source", ("lag: 12 h", "lag: 12")),
        ("source", ("short_rows: fill", "short_row: fill")),
        ("source", ("min: 0", "min: none")),
        ("model", ("eps: {share: 0.5}", "eps: {shares: 0.5}")),
        ("model", ("eps: {share: 0.5}", "eps: -1")),
        ("model", ("start: 2025-01-01", "start: soon")),
        ("model", ("aggregate: mean", "aggregate: median")),
        ("model", ("window: {sliding: 30}", "window: {sliding: 30, infinite: 30}")),
        ("model", ("degree: 2", "degree: two")),
        ("model", ("on_gap: reset", "on_gap: stop")),
        ("model", ("threshold: 40", "threshold: high")),
        ("model", ("withdrawn: false", "withdrawal: false")),
        ("model", ("method: auto", "method: best")),
        ("model", ("rounds: 20", "rounds: 2")),
        ("model", ("dynamic: 0.5", "dynamic: 0")),
        ("model", ("loss: huber", "loss: squared")),
        ("model", ("alpha: 0.01", "alpha: 1")),
        ("model", ("dimensions: 2", "dimensions: none")),
    ],
)
def test_what_the_reader_refuses_the_schema_refuses(kind: str, edit: tuple[str, str], tmp_path: Path) -> None:
    text = next(one for one in RICH[kind] if edit[0] in one)
    wrong = text.replace(*edit, 1)
    with pytest.raises(DefinitionError):
        READERS[kind](write(tmp_path, wrong))
    assert checked(kind, read_yaml(wrong).data)


def test_the_files_that_the_extension_of_an_editor_names_exist_and_agree(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path / "made")]) == 0
    folder = tmp_path / "made" / "editors"
    manifest = json.loads((folder / "package.json").read_text())
    # What VS Code requires of every extension, and the characters that it allows in a name.
    assert {"name", "version", "publisher"} <= manifest.keys() and manifest["engines"]["vscode"].startswith("^")
    assert re.fullmatch(r"[a-z0-9-]+", manifest["name"]) and re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])
    (language,), (coloured,) = manifest["contributes"]["languages"], manifest["contributes"]["grammars"]
    assert language["extensions"] == [".sase"] and coloured["language"] == language["id"]
    read = json.loads((folder / coloured["path"]).read_text())
    assert coloured["scopeName"] == read["scopeName"] == "source.sase"
    assert language["extensions"] == [f".{ending}" for ending in read["fileTypes"]]
    assert coloured["embeddedLanguages"] == {read["repository"]["front"]["contentName"]: "yaml"}
    typing = json.loads((folder / language["configuration"]).read_text())
    assert next(lexer.pieces(typing["comments"]["lineComment"] + " said")).kind == "comment"
    named = {coloured["path"].removeprefix("./"), language["configuration"].removeprefix("./")}
    known = {*named, "package.json", "source.schema.json", "model.schema.json"}
    assert {file.name for file in folder.iterdir()} == known


def words_of(scope: str) -> re.Pattern[str]:
    patterns = grammar()["repository"]["query"]["patterns"]
    return re.compile(next(one["match"] for one in patterns if one["name"] == scope))


def test_the_grammar_has_all_words_of_the_language() -> None:
    """Those that the parser's files compare tokens with, and the aggregates and functions that it knows."""
    keyword, function = words_of("keyword.control.sase"), words_of("support.function.sase")
    folder = Path(lexer.__file__).parent
    texts = [file.read_text() for file in folder.glob("*.py")]
    asked = {word for text in texts for word in re.findall(r'"([A-Z]{2,})"', text)}
    asked |= lexer.KEYWORDS | AGGREGATES.keys()
    assert len(asked) > 60
    for word in asked:
        assert keyword.fullmatch(word) and keyword.fullmatch(word.lower()), word
    for name in functions.known():
        assert function.match(f"{name}(x)"), name
    assert not keyword.fullmatch("ticker") and not keyword.search("SEQUENCES")


def test_the_grammar_splits_a_pattern_as_the_lexer_does() -> None:
    """Of all shipped patterns: each keyword, string, comment and number of the lexer is one of the grammar's rules."""
    rules = [(one["name"], re.compile(one["match"])) for one in grammar()["repository"]["query"]["patterns"]]
    wanted = {"keyword": ("keyword", "constant.language"), "string": ("string",), "comment": ("comment",),
              "number": ("constant.numeric",)}  # fmt: skip
    seen = set()
    for file in sorted((PROJECT / "dags" / "config" / "patterns").glob("*.sase")):
        text = file.read_text()
        _, start = read_front_matter(SourceText(text))
        for piece in lexer.pieces(text, start):
            if piece.kind not in wanted:
                continue
            found = [(rule.match(text, piece.begin), name) for name, rule in rules]
            whole = [name for match, name in found if match and match.end() == piece.begin + len(piece.text.rstrip())]
            assert any(name.startswith(wanted[piece.kind]) for name in whole), (file.name, piece)
            seen.add(piece.kind)
    assert {"keyword", "number"} <= seen
