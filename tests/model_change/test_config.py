"""Model files: what is accepted, and that errors name file, line, key and what is allowed."""

from __future__ import annotations

import numpy as np
import pytest

from chainlake.definitions.source import load_source
from chainlake.errors import DefinitionError
from chainlake.model_change.config.features import Feature, values_of
from chainlake.model_change.days.definitions import load_definition, parse_definition
from chainlake.paths import PROJECT
from tests.model_change.refusals import refused

GOOD = """\
source: traffic
start: 2025-10-01
nodes: [a, b, c]
response: speed
features:
  - flow
  - {of: speed, key: d, transform: [log, diff]}
  - polynomial: {of: position, degree: 3, scale: [-1, 1]}
round: {length: 5 min, aggregate: mean, min_nodes: 2}
window: {sliding: 12}
eps: 0.5
"""


def test_defaults_and_names():
    config = parse_definition(GOOD, "m")
    assert config.feature_names == (
        "constant", "flow", "diff(log(d.speed))", "position", "position^2", "position^3",
    )  # fmt: skip
    assert (config.intercept, config.constraint, config.detector, config.metric) == (
        0,
        "residual",
        "both",
        "coefficient",
    )
    assert config.keys("") == ("a", "b", "c", "d") and config.columns == ("flow", "position", "speed")
    assert config.max_carry == 12 and config.round_us == 300_000_000
    assert parse_definition(GOOD.replace("sliding", "infinite")).constraint == "onesided"


def test_the_constant_may_stand_among_the_features_instead():
    config = parse_definition(GOOD.replace("  - flow\n", "  - flow\n  - constant\n") + "intercept: false\nridge: 2\n")
    assert config.feature_names[:2] == ("flow", "constant") and config.intercept == 1
    assert config.ridge is not None and [row[i] for i, row in enumerate(config.ridge)] == [2, 0, 2, 2, 2, 2]


def test_the_hash_follows_what_can_change_a_result():
    same = parse_definition(GOOD).definition_hash
    for text in (GOOD + "max_replay: 3\n", GOOD + "description: other words\n", "# a comment\n" + GOOD):
        assert parse_definition(text).definition_hash == same
    for old, new in (("0.5", "0.6"), ("12}", "13}"), ("degree: 3", "degree: 2"), ("[a, b, c]", "[a, c, b]")):
        assert parse_definition(GOOD.replace(old, new)).definition_hash != same


@pytest.mark.parametrize(
    ("old", "new", "key", "line", "hint"),
    [
        ("eps: 0.5", "eps: 0", "eps", 11, "above 0"),
        ("eps: 0.5", "eps: {share: -1}", "eps.share", 11, "above 0"),
        ("eps: 0.5", "eps: half", "eps", 11, "number"),
        ("window: {sliding: 12}", "window: {sliding: 0}", "window.sliding", 10, "from 1"),
        ("window: {sliding: 12}", "window: {sliding: 1}", "window", 10, "at least 2 rounds"),
        ("window: {sliding: 12}", "window: {hopping: 12}", "window.hopping", 10, "sliding, infinite"),
        ("eps: 0.5", "eps: 0.5\nconstraint: tight", "constraint", 12, "paper, residual, onesided, energy, matfrac"),
        ("eps: 0.5", "eps: 0.5\nconstraint: printed_infinite", "constraint", 12, "paper, residual"),
        ("eps: 0.5", "eps: 0.5\ndetector: fast", "detector", 12, "local, exact, both"),
        ("eps: 0.5", "eps: 0.5\nmetric: r2", "metric", 12, "coefficient, prediction"),
        ("eps: 0.5", "eps: 0.5\ngls: {phi: 1}", "gls.phi", 12, "not including, 1"),
        ("eps: 0.5", "eps: 0.5\nridge: [[1, 2], [2, 1]]", "ridge", 12, "6 x 6"),
        ("eps: 0.5", "eps: 0.5\non_gap: reset", "on_gap", 12, "session_gap"),
        ("eps: 0.5", "eps: 0.5\nepsilon: 1", "epsilon", 12, "detector"),
        ("eps: 0.5", "eps: 0.5\nmax_replay: 0", "max_replay", 12, "from 1"),
        ("  - flow\n", "  - flow\n  - flow\n", "features", 5, "once"),
        ("  - flow\n", "  - flow\n  - constant\n", "features.1", 7, "set intercept: false"),
        ("features:\n", "intercept: true\nfeatures:\n  - constant\n", "features.0", 7, "Drop the feature"),
        ("features:\n", "intercept: false\nfeatures:\n  - constant\n  - constant\n", "features", 6, "once"),
        ("  - flow\n", "  - {of: flow, transform: sqrt}\n", "features.0.transform", 6, "log, diff, lag N"),
        ("  - flow\n", "  - {of: flow, transform: lag ²}\n", "features.0.transform", 6, "log, diff, lag N"),
        ("  - flow\n", "  - 7\n", "features.0", 6, "column name"),
        ("degree: 3, ", "degree: x, ", "features.2.polynomial.degree", 8, "from 1"),
        ("length: 5 min", "length: 7 min", "round.length", 9, "5 min"),
        ("length: 5 min", "length: 5", "round.length", 9, "min"),
        ("aggregate: mean", "aggregate: median", "round.aggregate", 9, "last, first, mean"),
        ("min_nodes: 2", "min_nodes: 4", "round.min_nodes", 9, "1 to 3"),
        ("nodes: [a, b, c]", "nodes: [a, a]", "nodes", 3, "once"),
        ("nodes: [a, b, c]", "nodes: []", "nodes", 3, "non-empty list"),
        ("nodes: [a, b, c]\n", "", "nodes", 1, "groups"),
        ("start: 2025-10-01", "start: soon", "start", 2, "YYYY-MM-DD"),
        ("response: speed\n", "", "response", 1, "column name"),
    ],
)
def test_errors_say_where_and_what_is_allowed(tmp_path, old, new, key, line, hint):
    error = refused(tmp_path, GOOD, (old, new), key, line)
    assert hint in (error.hint or "")


def test_not_yaml_and_not_a_mapping(tmp_path):
    path = tmp_path / "wrong.yaml"
    for text in ("a: [1", "- 1\n", ""):
        path.write_text(text)
        with pytest.raises(DefinitionError, match=r"wrong\.yaml"):
            load_definition(path)
        with pytest.raises(DefinitionError):
            parse_definition(text)


def test_shipped_models_are_valid():
    files = sorted((PROJECT / "dags" / "config" / "models").glob("*.yaml"))
    assert files and all(load_definition(file).name == file.stem for file in files)


def test_an_error_in_a_text_has_no_place_in_a_file() -> None:
    with pytest.raises(DefinitionError) as caught:
        parse_definition(GOOD.replace("eps: 0.5", "eps: x"), "m")
    assert (caught.value.file, caught.value.line, caught.value.column, caught.value.key) == (None, None, None, "eps")
    assert str(caught.value).startswith("'x' is not a number (key eps)")


def test_an_unknown_key_is_named_as_in_every_definition(tmp_path) -> None:
    for text, load in ((GOOD, load_definition), ("key: k\n", load_source)):
        (tmp_path / "m.yaml").write_text(f"{text}zzz: 1\n")
        with pytest.raises(DefinitionError, match=r"unknown key 'zzz' \(key zzz\)\n *hint: Allowed here: "):
            load(tmp_path / "m.yaml")


def test_a_step_that_nobody_computes_is_no_shift() -> None:
    with pytest.raises(AssertionError, match="sqrt"):
        values_of(Feature(of="x", steps=(("sqrt", 0),)), np.ones((3, 1)), None)  # type: ignore[arg-type]
