"""Texts of the language as queries: enough for worked cases and for what ``text`` writes."""

from __future__ import annotations

import re
from typing import Any

from tests.cep.language_oracle.model import Branch, Group, Item, Query, Structure, leaves, names_of

_TOKEN = re.compile(r"\s*('[^']*'|[A-Za-z_]\w*|\d+\.\d+|\d+|<=|>=|!=|<>|==|[-+*/<>=(){},.?])")
_AGGREGATES = ("AVG", "SUM", "MIN", "MAX", "COUNT", "FIRST", "LAST", "STDDEV", "MEDIAN", "PERCENTILE")
_CALLS = {
    name.upper(): name
    for name in ("Abs", "Floor", "Ceil", "Round", "Sqrt", "Exp", "Lower", "Upper", "Length", "Power", "Least",
                 "Greatest", "Coalesce", "Mod", "SECONDS")
}  # fmt: skip


def query_of(text: str) -> Query:
    """The query that a text stands for.

    Raises:
        ValueError: a text that this small reader does not know.
    """
    return _Reader(text).query()


class _Reader:
    """A reader of one text."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        at, text = 0, text.strip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise ValueError(f"unknown: {text[at:]}")
            self.tokens.append(found[1])
            at = found.end()
        self.at = 0
        self.names: set[str] = set()

    # ---- tokens

    def ahead(self, *words: str) -> bool:
        """Whether these words come next."""
        return [t.upper() for t in self.tokens[self.at : self.at + len(words)]] == list(words)

    def take(self) -> str:
        """The next token."""
        self.at += 1
        return self.tokens[self.at - 1]

    def skip(self, *words: str) -> bool:
        """Pass over these words if they come next."""
        if not self.ahead(*words):
            return False
        self.at += len(words)
        return True

    def need(self, word: str) -> None:
        """Pass over a word that must come next."""
        if not self.skip(word):
            raise ValueError(f"{word} is expected at {self.tokens[self.at :]}")

    def separated(self, one: Any) -> list[Any]:
        """What stands between parentheses or braces, already opened, with commas; the closing sign is left."""
        found = [one()]
        while self.skip(","):
            found.append(one())
        return found

    # ---- structure

    def query(self) -> Query:
        """A whole query."""
        self.need("PATTERN")
        if self.ahead("OR"):
            self.at += 2
            branches = self.separated(self.branch)
            self.need(")")
        else:
            branches = [Branch(self.structure())]
        self.names = {item.name for branch in branches for item in leaves(branch.structure)}
        where = self.condition() if self.skip("WHERE") else None
        if len(branches) == 1:
            branches, where = [Branch(branches[0].structure, where)], None
        within = self.number() if self.skip("WITHIN") else None
        pause = self.number() if self.skip("PAUSE") else None
        keep = self.take().upper() if self.ahead("MAXIMAL") or self.ahead("OUTERMOST") else ""
        measures = self.separated(self.measure) if self.skip("MEASURES") else []
        if self.at != len(self.tokens):
            raise ValueError(f"not understood: {self.tokens[self.at :]}")
        return Query(tuple(branches), where, within, pause, keep, tuple(measures))

    def measure(self) -> tuple[str, tuple]:
        """A measure."""
        value = self.sum()
        self.need("AS")
        return self.take(), value

    def branch(self) -> Branch:
        """A branch of the OR at the top."""
        structure = self.structure()
        return Branch(structure, self.condition() if self.skip("WHERE") else None)

    def structure(self) -> Structure:
        """An item or a group."""
        for kind in ("SEQ", "AND", "OR"):
            if self.skip(kind, "STRICT"):
                of_key = self.skip("OF", "KEY")
                return self.group(kind, True, of_key)
            if self.ahead(kind, "("):
                self.at += 1
                return self.group(kind, False, False)
        for role in ("NOT", "COLLECT", "UNTIL"):
            if self.ahead(role, "(") or self.ahead(role, "?", "("):
                self.at += 1
                role += "?" if self.skip("?") else ""
                self.need("(")
                item = self.item(role)
                self.need(")")
                return item
        return self.item("EVENT")

    def group(self, kind: str, strict: bool, of_key: bool) -> Group:
        """What stands between the parentheses of a group."""
        self.need("(")
        items = self.separated(self.structure)
        self.need(")")
        return Group(kind, tuple(items), strict, of_key)

    def item(self, role: str) -> Item:
        """``Type``, what stands behind it, and a name."""
        of, many, sizes, optional = self.take(), False, None, False
        if self.skip("+") or (of != "*" and self.skip("*")):
            many = True
        elif self.skip("?"):
            optional = True
        elif self.skip("{"):
            low = high = int(self.take())
            if self.skip(","):
                high = None if self.ahead("}") else int(self.take())  # type: ignore[assignment]
            self.need("}")
            many, sizes = True, (low, high)
        name = of if self.ahead(",") or self.ahead(")") else self.take()
        return Item(role, of, name, many, sizes, optional)

    def number(self) -> int:
        """A whole number."""
        return int(self.take())

    # ---- conditions

    def condition(self) -> tuple:
        """OR of AND of the rest."""
        parts = [self.conjunction()]
        while self.skip("OR"):
            parts.append(self.conjunction())
        return ("or", tuple(parts)) if len(parts) > 1 else parts[0]

    def conjunction(self) -> tuple:
        """AND of the rest."""
        parts = [self.negation()]
        while self.skip("AND"):
            parts.append(self.negation())
        return ("and", tuple(parts)) if len(parts) > 1 else parts[0]

    def negation(self) -> tuple:
        """NOT, a condition in parentheses, or a comparison."""
        if self.skip("NOT"):
            return "not", self.negation()
        start = self.at
        if self.skip("("):
            try:
                inner = self.condition()
                self.need(")")
            except (ValueError, IndexError):
                self.at = start  # parentheses of a value
            else:
                return inner
        return self.comparison()

    def comparison(self) -> tuple:
        """A comparison of values, or TRUE, or FALSE."""
        for word in ("TRUE", "FALSE"):
            if self.skip(word):
                return "const", word == "TRUE"
        value = self.sum()
        if self.skip("IS"):
            negated = self.skip("NOT")
            self.need("NULL")
            return "null", value, negated
        negated = self.skip("NOT")
        if self.skip("BETWEEN"):
            low = self.sum()
            self.need("AND")
            return "between", value, negated, low, self.sum()
        if self.skip("IN"):
            self.need("{")
            literals = tuple(v[1] for v in self.separated(self.sum))
            self.need("}")
            return "in", value, negated, literals
        for kind in ("LIKE", "MATCHES"):
            if self.skip(kind):
                return kind.lower(), value, negated, self.take()[1:-1]
        op = {"==": "=", "<>": "!="}.get(self.tokens[self.at], self.tokens[self.at])
        if op not in ("<", "<=", ">", ">=", "=", "!="):
            raise ValueError(f"a comparison is expected at {self.tokens[self.at :]}")
        self.at += 1
        return "cmp", op, value, self.sum()

    def sum(self) -> tuple:
        """Terms."""
        value = self.term()
        while self.at < len(self.tokens) and self.tokens[self.at] in "+-":
            value = "op", self.take(), value, self.term()
        return value

    def term(self) -> tuple:
        """Factors."""
        value = self.factor()
        while self.at < len(self.tokens) and self.tokens[self.at] in "*/":
            value = "op", self.take(), value, self.factor()
        return value

    def factor(self) -> tuple:
        """A value."""
        token = self.take()
        word = token.upper()
        if token == "-":
            inner = self.factor()
            return ("lit", -inner[1]) if inner[0] == "lit" else ("neg", inner)
        if token == "(":
            value = self.sum()
            self.need(")")
            return value
        if token[0] == "'":
            return "lit", token[1:-1]
        if token[0].isdigit():
            return "lit", float(token) if "." in token else int(token)
        if word == "CASE":
            return self.case()
        if self.skip("("):
            value = self.prev() if word == "PREV" else self.call(word)
            self.need(")")
            return value
        if self.skip("."):
            return "ref", token, self.take()
        return "lit", token

    def case(self) -> tuple:
        """What stands behind CASE."""
        cases = []
        while self.skip("WHEN"):
            condition = self.condition()
            self.need("THEN")
            cases.append((condition, self.sum()))
        otherwise = self.sum() if self.skip("ELSE") else None
        self.need("END")
        return "case", tuple(cases), otherwise

    def prev(self) -> tuple:
        """What stands between the parentheses of PREV."""
        _, name, attr = self.sum()
        n = self.number() if self.skip(",") else None
        return "prev", name, attr, n, self.number() if self.skip(",") else None

    def call(self, word: str) -> tuple:
        """What stands between the parentheses of an aggregate or function."""
        if word not in _AGGREGATES:
            return "call", _CALLS[word], tuple(self.separated(self.sum))
        function = "COUNT DISTINCT" if word == "COUNT" and self.skip("DISTINCT") else word
        of = self.sum()
        more = float(self.take()) if self.skip(",") else None
        if of[0] == "lit":
            return "agg", function, of[1], None, more
        (name,) = names_of(of)
        return "agg", function, name, of[2] if of[0] == "ref" else of, more
