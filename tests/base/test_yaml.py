"""The reader of all definitions: bare words as typed, and YAML that is made to hurt costs only its own file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from chainlake.airflow.names import dag_ids
from chainlake.catalog.models import load_models
from chainlake.catalog.patterns import load_patterns
from chainlake.definitions.source import load_sources
from chainlake.definitions.yaml_lines import YamlProblem, load_section, read_yaml
from chainlake.errors import DefinitionError
from chainlake.model_change.days.definitions import parse_definition
from chainlake.paths import PROJECT, Home
from tests.spent import within

CONFIG = PROJECT / "dags" / "config"
QUERY = "PATTERN SEQ(Bar a, Bar b)\nWHERE a.ticker = b.ticker\nWITHIN 10 min\n"

#: What is typed, and what it is read as. The texts are those that YAML 1.1 or 1.2 reads as something else.
BARE = [
    ("ON", "ON"), ("no", "no"), ("Yes", "Yes"), ("y", "y"), ("TRUE", "TRUE"), ("False", "False"), ("NULL", "NULL"),
    ("007", "007"), ("010", "010"), ("0o10", "0o10"), ("0x1F", "0x1F"), ("0b11", "0b11"), ("1_000", "1_000"),
    ("12:30", "12:30"), ("1:02:03.5", "1:02:03.5"), (".5", ".5"), ("5.", "5."), ("+5", "+5"), (".inf", ".inf"),
    ("2024-03-01", "2024-03-01"), ("2024-03-01 10:00:00", "2024-03-01 10:00:00"), ("1.2.3", "1.2.3"), ("=", "="),
    ("'5'", "5"), ('"true"', "true"), ("'~'", "~"),
    ("true", True), ("false", False), ("null", None), ("~", None), ("", None),
    ("5", 5), ("-5", -5), ("0", 0), ("1.50", 1.5), ("1e3", 1000.0), ("1.5E-3", 0.0015), ("9" * 20, 10**20 - 1),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "meant"), BARE)
def test_bare_words_are_read_as_typed(typed: str, meant: object) -> None:
    for text in (f"a: {typed}", f"a:\n- {typed}", f"{{a: {typed}}}"):
        found = read_yaml(text).data["a"]
        found = found[0] if isinstance(found, list) else found
        assert (type(found), found) == (type(meant), meant), text
    assert read_yaml(f"{typed or 'x'}: 1").data == {typed.strip("'\"") or "x": 1}


def test_shipped_definitions_say_to_this_reader_what_they_say_to_another() -> None:
    """Definitions are hashed as they are read, and a hash that moves would make all days stale."""
    texts = [file.read_text() for file in CONFIG.glob("*/*.yaml")]
    texts += [file.read_text().split("---\n")[1] for file in CONFIG.glob("patterns/*.sase")]
    assert len(texts) > 15

    def plain(value: object) -> object:
        if isinstance(value, dict):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, list):
            return [plain(item) for item in value]
        return value if isinstance(value, bool | int | float | None) else str(value)

    for text in texts:
        assert read_yaml(text).data == plain(yaml.safe_load(text))


def bomb(levels: int = 9) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


def chain(levels: int = 500) -> str:
    return "\n".join(["a0: &a0 x", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, levels))])


HOSTILE = {
    "aliases of aliases": (bomb(), "values in one definition"),
    "a long chain of aliases": (chain(), "inside each other"),
    "a list that holds itself": ("a: &a [*a]", "is inside what it names"),
    "a map that holds itself": ("a: &a {b: *a}", "is inside what it names"),
    "an alias of nothing": ("a: *b", "b"),
    "deep lists": ("a: " + "[" * 50_000 + "]" * 50_000, "inside each other|nesting depth"),
    "deep maps": ("\n".join(" " * n + "a:" for n in range(400)), "inside each other"),
    "many values": ("a: [" + "x," * 200_000 + "]", "values in one definition"),
    "a key twice": ("a: 1\nb: {c: 1, c: 2}", "duplicate key c"),
    "a Python object": ("a: !!python/object/apply:os.system [ls]", "tag"),
    "a tag": ("a: !!str 5", "tag"),
    "a tag of one's own": ("a: !b 5", "tag"),
    "a list as a key": ("? [a, b]\n: 1", "a key must be a word"),
    "two documents": ("a: 1\n---\nb: 2", "second document"),
    "a NUL": ("a: b\0c", "not valid YAML"),
    "a control character": ("a: 1\nb: \x07", "not valid YAML"),
    "no end": ("a: [1, 2", "not valid YAML"),
    "a tab": ("a:\n\tb: 1", "not valid YAML"),
    "a number of no size": ("a: 1e999", "too large"),
    "a number of many digits": ("a: " + "9" * 10_000, "too large"),
    "a whole number beyond all doubles": ("a: [1, " + "9" * 400 + "]", "too large"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_yaml_is_refused_at_once_and_where_it_stands(name: str) -> None:
    text, what = HOSTILE[name]
    with within(2), pytest.raises(YamlProblem, match=what) as caught:
        read_yaml(text)
    assert 1 <= caught.value.line <= text.count("\n") + 1 and caught.value.column >= 1


def test_an_anchor_that_is_used_again_is_the_value_again() -> None:
    document = read_yaml("a: &x {b: [1, ON]}\nc: *x\nd: [*x, *x]")
    assert document.data == {"a": {"b": [1, "ON"]}, "c": {"b": [1, "ON"]}, "d": [{"b": [1, "ON"]}] * 2}


@pytest.fixture
def config(tmp_path: Path) -> Home:
    """An installation with one good definition of each kind."""
    for folder in ("sources", "patterns", "models"):
        (tmp_path / folder).mkdir()
    (tmp_path / "sources" / "stock.yaml").write_bytes((CONFIG / "sources" / "stock.yaml").read_bytes())
    (tmp_path / "patterns" / "good.sase").write_text(f"---\nsource: stock\n---\n{QUERY}")
    (tmp_path / "models" / "good.yaml").write_bytes((CONFIG / "models" / "bac_beta.yaml").read_bytes())
    return Home(tmp_path, str(tmp_path / "lake"), tmp_path, tmp_path)


def loaded(home: Home) -> tuple[list[str], dict[str, DefinitionError]]:
    """The good definitions, and the errors of the others."""
    sources = load_sources(home)
    patterns, bad_patterns = load_patterns(home, sources)
    models, bad_models = load_models(home, sources)
    errors = {**sources.broken, **{one.name: one.error for one in (*bad_patterns, *bad_models)}}
    return [*sources, *(one.pattern.name for one in patterns), *(one.config.name for one in models)], errors


BYTES = {
    **{name: text.encode() for name, (text, _) in HOSTILE.items()},
    "no UTF-8": b"source: stock\ndescription: \xff\xfe\n",
    "no text": bytes(range(256)),
    "too large": b"# " + b"x" * (1 << 20),
    "a list": b"- a\n",
    "nothing": b"",
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", BYTES)
def test_only_the_file_that_is_wrong_is_broken(config: Home, name: str) -> None:
    (config.config / "sources" / "bad_source.yaml").write_bytes(BYTES[name])
    (config.config / "patterns" / "bad_pattern.sase").write_bytes(b"---\n" + BYTES[name] + b"\n---\n" + QUERY.encode())
    (config.config / "models" / "bad_model.yaml").write_bytes(BYTES[name])
    with within(8):
        good, errors = loaded(config)
    assert good == ["stock", "good", "good"]
    assert sorted(errors) == ["bad_model", "bad_pattern", "bad_source"]
    for key, error in errors.items():
        assert error.file is not None and key in error.file
    assert "ingest_stock" in dag_ids(config)


def test_a_folder_or_a_dead_link_is_broken_alone(config: Home) -> None:
    for folder, name in (("sources", "bad.yaml"), ("patterns", "bad_pattern.sase"), ("models", "bad_model.yaml")):
        (config.config / folder / name).mkdir()
        (config.config / folder / f"dead_{name}").symlink_to("nowhere")
    good, errors = loaded(config)
    assert good == ["stock", "good", "good"] and len(errors) == 6
    assert "ingest_stock" in dag_ids(config)


def test_names_that_no_table_can_have_are_refused(config: Home) -> None:
    stock = (config.config / "sources" / "stock.yaml").read_bytes()
    model = (config.config / "models" / "good.yaml").read_bytes()
    for name in ("größe", "a b", "a.b", "données", "価格", "x" * 101):
        (config.config / "sources" / f"{name}.yaml").write_bytes(stock)
        (config.config / "patterns" / f"{name}.sase").write_text(f"---\nsource: stock\n---\n{QUERY}")
        (config.config / "models" / f"{name}.yaml").write_bytes(model)
        good, errors = loaded(config)
        assert good == ["stock", "good", "good"]
        assert f"'{name}' cannot be the name of a" in errors[name].what
        assert "Rename the file" in (errors[name].hint or "")
        assert not [one for one in dag_ids(config) if name in one]
        for file in config.config.glob(f"*/{name}.*"):
            file.unlink()


def test_a_start_that_is_no_day_stops_no_other_dag(config: Home) -> None:
    (config.config / "models" / "bad.yaml").write_text("source: stock\nstart: 2025-02-31\n")
    assert "monitor_stock" in dag_ids(config)


def test_a_byte_order_mark_is_no_part_of_a_definition(config: Home) -> None:
    for file in config.config.glob("*/*.*"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert loaded(config) == (["stock", "good", "good"], {})


def test_a_key_that_takes_a_text_gets_what_was_typed(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: 1.50\nb: [1.50, 0x1F, true, NO, '07']\nc: true\n")
    section = load_section(path)
    assert section.get("a", str) == "1.50" and section.get("c", str) == "true"
    assert section.texts("b") == ("1.50", "0x1F", "true", "NO", "07")
    assert section.get("a", float) == 1.5 and section.get("c", bool) is True


@pytest.mark.parametrize("typed", [".5", "+5", "1_000", "007", "0x1F", "12:30", ".inf", "yes"])
def test_a_key_that_takes_a_number_or_a_switch_says_how_it_is_written(tmp_path: Path, typed: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"first: 1\na: {typed}\n")
    with pytest.raises(DefinitionError, match="must be") as caught:
        load_section(path).get("a", bool if typed == "yes" else float)
    assert (caught.value.line, caught.value.column, caught.value.key) == (2, 1, "a")


def test_keys_of_models_are_the_texts_that_were_typed() -> None:
    text = "source: s\nstart: 2025-01-01\nround: {length: 1 min}\nresponse: x\nwindow: {sliding: 9}\neps: 1\n"
    config = parse_definition(text + "nodes: [ON, 007, 1.50, 12:30, {name: NO, keys: [1e3, 0x1F]}]\n")
    nodes = config.groups[""]
    assert [node.name for node in nodes] == ["ON", "007", "1.50", "12:30", "NO"]
    assert nodes[-1].keys == ("1e3", "0x1F")


#: What somebody may type, where it is told (line, column), and words of the message and its hint.
TYPED = {
    "a tab": ("a:\n\tb: 1\n", (2, 1), "the indentation of this line contains a tab", "spaces only"),
    "a tab after blanks": (
        "a:\n  b: 1\n  \tc: 2\n",
        (3, 3),
        "the indentation of this line contains a tab",
        "spaces only",
    ),
    "a tab in a list": ("a:\n  - 1\n\t- 2\n", (3, 1), "the indentation of this line contains a tab", "spaces only"),
    "indented too far": ("a: 1\n  b: 2\n", (2, 3), "indented deeper than line 1", "column 1"),
    "over a comment": ("a: 1\n# c\n\n  b: 2\n", (4, 3), "indented deeper than line 1", "column 1"),
    "indented between": ("a:\n    b: 1\n  c: 2\n", (3, 3), "begins in column 3", "here 1 or 5"),
    "no item": ("a:\n  - x: 1\n   y: 2\n", (3, 4), "not an item of the list that begins on line 2", "column 3"),
    "a colon in a text": ("d: what it means: this\n", (1, 17), "needs quotes", "single quotes"),
    "no colon": ("a: 1\nbcd\ne: 2\n", (2, 1), "not 'key: value'", "Write 'key: value'"),
    "no blank": ("a: 1\nb:2\nc: 3\n", (2, 1), "not 'key: value'", "a space after the colon"),
    "no blank above": ("a:1\nb: 2\n", (1, 1), "not 'key: value'", "a space after the colon"),
    "an open list": ("a: [1, 2\nb: 3\n", (1, 4), "the [ has no ]", "before line 2"),
    "an open list at the end": ("a: [1, 2", (1, 4), "the [ has no ]", "Close it."),
    "an open map": ("a: {b: 1, c: 2\n\nd: [3]\n", (1, 4), "the { has no }", "before line 3"),
    "no comma": ("b: {x: 1 y: 2}\n", (1, 11), "a comma or } is missing", "column 4"),
    "a brace in a text": (
        "b: {x: a IN {1, 2}}\n",
        (1, 13),
        "a comma or } is missing",
        "column 4. A string that contains a bracket",
    ),
    "an open quote": ("a: 1\nb: 'it\nc: 1\n", (2, 4), "the quote that begins here", "twice"),
    "a quote in quotes": ("a: 'don't'\nb: 1\n", (1, 9), "follows the string in quotes", "twice"),
    "a backslash": ('path: "(\\d+)"\n', (1, 9), "a backslash in double quotes", "single quotes"),
    "a star": ("glob: *.csv\n", (1, 7), "must not begin with *", "single quotes"),
    "an at": ("a: @x\n", (1, 4), "must not begin with @", "single quotes"),
    "a list behind a key": ("a: - 1\n", (1, 4), "cannot begin on the line of its key", "[a, b]"),
    "one closing bracket": ("a: 1\nb: ]\n", (2, 4), "no value before ]", "Quote it"),
    "a missing value": ("a: [1,,2]\n", (1, 7), "no value before ,", "Quote it"),
    "no key": (": 1\n", (1, 1), "no key before the colon", ""),
    "behind a bar": ("a: |x\n", (1, 5), "begins on the next line", "single quotes"),
    "behind the end": ("a: 1\n...\nb: 2\n", (3, 1), "has ended before this line", "closing bracket"),
    "a per cent": ("%a: 1\nb: 2\n", (1, 1), "must not begin with %", "single quotes"),
}


@pytest.mark.parametrize("name", TYPED)
def test_slips_are_told_in_words_that_are_not_the_parsers(name: str) -> None:
    text, at, words, hint = TYPED[name]
    with pytest.raises(YamlProblem) as caught:
        read_yaml(text)
    found = caught.value
    assert (found.line, found.column) == at, found.what
    assert words in found.what and hint in (found.hint or "")
    assert not any(word in found.what for word in ("token", "mapping", "scalar", "node", "expected", "context"))
