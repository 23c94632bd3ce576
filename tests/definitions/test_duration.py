"""One grammar of durations: what a source accepts, a pattern and a model accept too, and the other way round."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from chainlake.cep.pattern import compile_pattern
from chainlake.definitions.derived import parse_history
from chainlake.definitions.duration import UNITS, parse_duration, parse_span
from chainlake.definitions.source import load_source
from chainlake.errors import ChainlakeError
from chainlake.model_change.days.definitions import parse_definition

SOURCE = "key: k\ntype: A\nattributes:\n  x: {type: double}\nformats:\n  - time: {column: ts}\n"
MODEL = """\
source: s
start: 2025-10-01
nodes: [a, b]
response: x
features: [y]
round: {length: 5 min}
window: {sliding: 12}
eps: 0.5
session_gap: '%s'
"""
MICROSECOND = timedelta(microseconds=1)


def of_source(text: str, folder: Path) -> int:
    (folder / "s.yaml").write_text(f"lag: '{text}'\n{SOURCE}", encoding="utf-8")
    return load_source(folder / "s.yaml").lag // MICROSECOND


def of_time(text: str, folder: Path) -> int:
    file = f"path: (?P<date>\\d{{8}})\n{SOURCE}".replace("{column: ts}", f"{{column: ts, around: '{text}'}}")
    (folder / "s.yaml").write_text(file, encoding="utf-8")
    return load_source(folder / "s.yaml").formats[0].time.around // MICROSECOND


def of_history(text: str, folder: Path) -> int:
    (folder / "s.yaml").write_text(f"derived: {{h: 'history(x, 2, {text})'}}\n{SOURCE}", encoding="utf-8")
    return load_source(folder / "s.yaml").derived[0].max_gap_us


def of_window(text: str, _: Path) -> int:
    return compile_pattern(f"PATTERN SEQ(A a, B b) WITHIN {text}").window_us


def of_parameter(text: str, _: Path) -> int:
    file = f"---\nparams: {{h: '{text}'}}\n---\nPATTERN SEQ(A a, B b) WITHIN h\n"
    return compile_pattern(file).window_us


def of_model(text: str, _: Path) -> int:
    gap = parse_definition(MODEL % text, "m").session_gap_us
    assert gap is not None
    return gap


READERS = [of_source, of_time, of_history, of_window, of_parameter, of_model]
ACCEPTED = {
    "500 ms": 500_000,
    "1 millisecond": 1_000,
    "90 s": 90_000_000,
    "90s": 90_000_000,
    "2 secs": 2_000_000,
    "5 m": 300_000_000,
    "5 min": 300_000_000,
    "5 minutes": 300_000_000,
    "1.5 h": 5_400_000_000,
    "6 hrs": 21_600_000_000,
    "2 d": 172_800_000_000,
    "1 w": 604_800_000_000,
    "3 Weeks": 1_814_400_000_000,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", ACCEPTED)
def test_every_reader_takes_a_duration_as_the_same_time(
    reader: Callable[[str, Path], int], text: str, tmp_path: Path
) -> None:
    assert reader(text, tmp_path) == ACCEPTED[text]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", ["soon", "5 years", "5", "5 5 min", "-5 min", "5 min 3 s", "1e999 s", "99999999999 d"])
def test_every_reader_refuses_what_is_no_duration(
    reader: Callable[[str, Path], int], text: str, tmp_path: Path
) -> None:
    with pytest.raises(ChainlakeError):
        reader(text, tmp_path)


@pytest.mark.parametrize("text", ["0 s", "0.0001 ms"])
def test_a_model_has_no_pause_of_length_zero(text: str, tmp_path: Path) -> None:
    with pytest.raises(ChainlakeError, match="is not a duration"):
        of_model(text, tmp_path)


def test_every_spelling_is_exact() -> None:
    assert {parse_duration(f"0.1 {unit}") for unit in UNITS} == {Fraction(1, 10) * size for size in UNITS.values()}
    assert parse_duration("1/3 min") == 20


def test_a_span_is_rounded_to_microseconds_and_bounded() -> None:
    assert parse_span("0.0000014 s") == MICROSECOND
    assert parse_span("0 s") == timedelta(0)
    assert parse_span("-1 s") is None
    assert parse_span("999999999 d") == timedelta(days=999_999_999)
    assert parse_span("1000000000 d") is None


@pytest.mark.parametrize(
    "text", ["history(x, 5, )", "history(x, 5, 5 min, 2)", "history(x, 5, (5 min))", "history(x, 5)"]
)
def test_a_history_has_three_parts(text: str) -> None:
    assert parse_history("h", text) is None
