"""Expressions as people read them: they mean what they were made of, and have no parentheses that they do not need."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from fractions import Fraction

import pytest

from chainlake.cep.explain.parts import bounds, ranking
from chainlake.cep.explain.report import chosen_orders, explain
from chainlake.cep.language import ast
from chainlake.cep.language.formatter import format_node
from chainlake.cep.language.parsing.query import parse
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.pattern import compile_pattern
from chainlake.errors import DefinitionError


def value(draw: random.Random, depth: int) -> ast.Node:
    """A value as the parser could have made it."""
    what = draw.choice(("ref", "literal", "word", "duration", "prev", "set") + 3 * ("sum", "product", "sign", "call"))
    if depth == 0 or what == "ref":
        return ast.Ref(draw.choice("ab"), draw.choice(("x", "y", "in", "odd name")))
    if what == "literal":
        return ast.Literal(draw.choice((0, 2, 0.5, 2e-7, "it's", True)))
    if what == "word":
        return ast.Word(draw.choice(("least", "fall")))
    if what == "duration":
        return ast.Duration(Fraction(draw.choice((1, 90)), 1))
    if what == "prev":
        return ast.Prev("a", "x", draw.choice((1, 2)))
    if what == "set":
        return ast.Aggregate(draw.choice(("AVG", "SUM")), "b", "x")
    if what == "sign":
        of = value(draw, depth - 1)
        # The parser makes one number of a sign and a number.
        return ast.Negative(ast.Ref("a", "x") if isinstance(of, ast.Literal) else of)
    if what == "call":
        if draw.random() < 0.5:
            return ast.Call("round", (value(draw, depth - 1), value(draw, depth - 1)))
        return ast.Case(((condition(draw, depth - 1), value(draw, depth - 1)),), value(draw, depth - 1))
    return ast.Arithmetic(draw.choice("+-" if what == "sum" else "*/"), value(draw, depth - 1), value(draw, depth - 1))


def condition(draw: random.Random, depth: int) -> ast.Node:
    """A condition as the parser could have made it."""
    what = draw.choice(("compare", "in", "null", "like", "const") + 3 * ("not", "and", "or"))
    if depth == 0 or what == "compare":
        return ast.Compare(draw.choice(("<", ">=", "!=")), value(draw, depth), value(draw, depth))
    if what == "in":
        items = (ast.Literal(-1), ast.Literal("p"), ast.Word("q"))
        return ast.Member(value(draw, depth - 1), draw.random() < 0.5, draw.choice((items, "Banks")))
    if what == "null":
        return ast.IsNull(value(draw, depth - 1), draw.random() < 0.5)
    if what == "like":
        return ast.Like(value(draw, depth - 1), ast.Literal("a%"), draw.random() < 0.5, draw.random() < 0.5)
    if what == "const":
        return ast.Const(draw.random() < 0.5)
    if what == "not":
        return ast.Not(condition(draw, depth - 1))
    parts = tuple(condition(draw, depth - 1) for _ in range(draw.choice((2, 3))))
    return ast.All(parts) if what == "and" else ast.Any(parts)


def read(text: str) -> str:
    """What the parser makes of a condition, with equal numbers of different types told apart."""
    where = parse(SourceText(f"PATTERN SEQ(A a, B* b) WHERE {text} WITHIN 5")).where
    assert where is not None
    return where.written


def without_one_pair(text: str) -> Iterator[str]:
    """The text without one of its pairs of parentheses, for each that is not of a call and not between two signs."""
    plain = re.sub(r"'(?:[^']|'')*'|\"[^\"]*\"", lambda found: "_" * len(found[0]), text)
    opened: list[int] = []
    for at, sign in enumerate(plain):
        if sign == "(":
            opened.append(at)
        elif sign == ")":
            begin = opened.pop()
            called = begin > 0 and (plain[begin - 1].isalnum() or plain[begin - 1] == "_")
            if not called and plain[max(0, begin - 1) : begin + 2] != "-(-":
                yield text[:begin] + text[begin + 1 : at] + text[at + 1 :]


@pytest.mark.parametrize("seed", range(5))
def test_every_pair_of_parentheses_is_needed_and_none_is_missing(seed: int) -> None:
    draw = random.Random(seed)
    pairs = 0
    for _ in range(150):
        node = condition(draw, 4)
        text = format_node(node)
        assert read(text) == node.written, text
        for changed in without_one_pair(text):
            pairs += 1
            try:
                assert read(changed) != node.written, f"{text} is {changed}"
            except DefinitionError:
                continue
    assert pairs > 100


@pytest.mark.parametrize(
    "text",
    [
        "b.x - a.x > 2", "a.x - (b.x - a.y) > 0", "a.x - b.x - a.y > 0", "(a.x + b.x) * 2 >= a.y / (b.y * 3)",
        "-(a.x - b.x) > -a.y", "a.x = 1 AND (a.y = 2 OR b.y = 3)", "NOT (a.x = 1 AND a.y = 2)", "NOT a.x = 1",
        "-a.x * b.x < 2", "CASE WHEN a.x > 1 OR b.x > 1 THEN a.x + 1 ELSE 0 END = 2", "-(-a.x) = 1",
    ],
)  # fmt: skip
def test_what_a_person_wrote_is_shown_as_it_was_written(text: str) -> None:
    where = parse(SourceText(f"PATTERN SEQ(A a, B b) WHERE {text} WITHIN 5")).where
    assert where is not None and format_node(where) == text


def test_explanations_have_no_needless_parentheses() -> None:
    pattern = compile_pattern(
        "PATTERN SEQ(A p, A q) WHERE q.x - p.x > 2 AND (q.ts - p.ts < 2 min OR Floor((q.x + 1) / 2) = 3) WITHIN 9 min "
        "MEASURES q.x - p.x AS rise, CASE WHEN q.ts - p.ts < 5 min THEN 1 ELSE 2 * (q.x - p.x) END AS speed "
        "RANK BY MAX(q.x - p.x) TOP 3 PER ALL FOR EACH q.x - p.x"
    )
    said = [*bounds(pattern), *ranking(pattern)]
    assert "measure   rise: q.x - p.x" in said
    assert "measure   speed: CASE WHEN q.ts - p.ts < 5 min THEN 1 ELSE 2 * (q.x - p.x) END" in said
    assert "ranks     by MAX(q.x - p.x)" in said and "keeps     the best 3 of all matches for each q.x - p.x" in said
    states = [line.strip() for line in explain(pattern, chosen_orders(pattern))]
    assert "where q.x - p.x > 2 AND (q.ts - p.ts < 2 min OR floor((q.x + 1) / 2) = 3)" in states
