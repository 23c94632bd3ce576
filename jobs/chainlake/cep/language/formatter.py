"""Writes abstract syntax as text: for people, and in the normal form that is hashed (docs/semantics.md#definitions).

Both are read back as what they were made of. They differ in parentheses: a hashed text has them around everything
composed, as it always had, since another form would make every published day stale.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from chainlake.cep.language import ast
from chainlake.cep.language.parsing.lexer import KEYWORDS
from chainlake.definitions.duration import UNITS

#: How tightly the parts of an expression hold together: one that holds less tightly than its place asks for is in
#: parentheses.
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _WHOLE = range(8)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def format_query(query: ast.Query) -> str:
    """``query`` as text; equal queries give equal texts, and parsing the text gives the query again."""
    branches = [_structure(b.structure) + _where(b.where) + _score(b.score) for b in query.branches]
    head = branches[0] if len(branches) == 1 else f"OR({', '.join(branches)})"
    windows = [_window("", query.within).strip(), *map(_event_window, query.counted)]
    tail = f" WITHIN {', '.join(filter(None, windows))}" if any(windows) else ""
    tail += _window("PAUSE", query.pause)
    tail += f" {query.keep}" if query.keep else ""
    tail += "" if query.selection is None else _selection(query.selection)
    if query.measures:
        tail += " MEASURES " + ", ".join(f"{hashed_text(one.value)} AS {one.name}" for one in query.measures)
    if query.episodes is not None:
        one = query.episodes
        key = f"{one.name}.{identifier(one.attr)}" if one.name else identifier(one.attr)
        tail += f" EPISODES BY {key}{_window('PAUSE', one.pause)}"
    tail += "" if query.ranking is None else _ranking(query.ranking)
    return f"PATTERN {head}{_where(query.where)}{tail}"


def _window(word: str, window: ast.Within | None) -> str:
    if window is None:
        return ""
    return f" {word} {window.value}{f' {window.unit}' if window.unit else ''}"


def _event_window(window: ast.EventWindow) -> str:
    return f"{'GAP ' * window.gap}{window.count} EVENTS{' OF KEY' * window.by_key}"


def _selection(selection: ast.Selection) -> str:
    text = f" CONTEXT {selection.context}" if selection.context else ""
    text += f" SELECT {selection.select}" if selection.select else ""
    if selection.picks:
        text += " PICK " + ", ".join(map(_pick, selection.picks))
    if selection.consume is not None:
        names = selection.consume if isinstance(selection.consume, str) else ", ".join(selection.consume)
        text += f" CONSUME {names}"
    return text + (f" PER {selection.per.upper()}" if selection.per else "")


def _pick(pick: ast.Pick) -> str:
    distance = "" if pick.within is None else f"{_window('within', pick.within)} from {pick.origin}"
    return f"{'last' if pick.last else 'first'} {pick.name}{distance}"


def _score(score: ast.Score | None) -> str:
    if score is None:
        return ""
    criteria = ", ".join(map(_criterion, score.criteria))
    return f" RANK BY {criteria}{score.combine and f' COMBINE {score.combine}'}"


def _criterion(one: ast.Criterion) -> str:
    text = f"{'MAX' if one.highest else 'MIN'}({hashed_text(one.value)})"
    text += "" if one.norm is None else f" NORM {hashed_text(one.norm[0])} .. {hashed_text(one.norm[1])}"
    return text + _amount(" WEIGHT", one.weight)


def _ranking(ranking: ast.Ranking) -> str:
    period = ranking.period
    text = f"{_score(ranking.score)} TOP {hashed_text(ranking.count)}{' WITH TIES' * ranking.with_ties}"
    text += f" PER {period.kind.upper()}{period.zone and f' IN {quoted(period.zone)}'}"
    text += _amount("", period.size) + _amount(" STEP", period.step)
    text += " BY FIRST" * period.by_first + _amount(" OFFSET", period.offset)
    text += f" FOR EACH {', '.join(map(hashed_text, ranking.per))}" if ranking.per else ""
    text += f" DISTINCT ON {', '.join(map(hashed_text, ranking.distinct))}" if ranking.distinct else ""
    text += _amount(" AT MOST", ranking.most) + " NON OVERLAPPING" * ranking.non_overlapping
    return text + _amount(" AT LEAST", ranking.least) + _amount(" QUANTUM", ranking.quantum)


def _amount(word: str, amount: ast.Node | None) -> str:
    return "" if amount is None else f"{word} {hashed_text(amount)}"


def _where(where: ast.Node | None) -> str:
    return "" if where is None else f" WHERE {hashed_text(where)}"


def _structure(item: ast.Structure) -> str:
    if isinstance(item, ast.Group):
        strict = {"": "", "stream": " STRICT ", "key": " STRICT OF KEY "}[item.strict]
        items = [str(item.of)] * (item.kind == "ANY") + [_structure(i) for i in item.items]
        return f"{item.kind}{strict}({', '.join(items)}){_window('WITHIN', item.within)}"
    kind = item.type if item.type == ast.ANY_TYPE else identifier(item.type)
    collected = item.role is ast.Role.COLLECTED
    text = f"{kind}{_quantifier(item)} {item.name}"
    return text if item.role is ast.Role.BOUND else f"{_WORDS[item.role]}{'?' * (collected and item.optional)}({text})"


_WORDS = {ast.Role.FORBIDDEN: "NOT", ast.Role.COLLECTED: "COLLECT", ast.Role.UNTIL: "UNTIL"}


def _quantifier(event: ast.Event) -> str:
    if event.size != ast.ANY_SIZE:
        least, most = event.size.least, event.size.most
        return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
    if event.kleene:
        # Here, a second * would be taken for the type.
        return "+" if event.type == ast.ANY_TYPE else "*"
    return "?" if event.optional and event.role is ast.Role.BOUND else ""


def identifier(name: str) -> str:
    """A type or an attribute as it is written in a query: in double quotes unless it is a plain word."""
    plain = _PLAIN.fullmatch(name) and name.upper() not in KEYWORDS
    return name if plain else '"' + name.replace('"', '""') + '"'


def quoted(text: str) -> str:
    """A string as it is written in a query."""
    return "'" + text.replace("'", "''") + "'"


def format_node(node: ast.Node) -> str:
    """One condition or value as people read it, with only those parentheses that its meaning needs."""
    return _Writer(every=False).text(node)


def hashed_text(node: ast.Node) -> str:
    """One condition or value in normal form, with parentheses around everything composed."""
    return _Writer(every=True).text(node)


@dataclass(frozen=True)
class _Writer:
    """Writes conditions and values.

    Args:
        every: whether parentheses are around everything composed, or only where they are needed.
    """

    every: bool

    def text(self, node: ast.Node) -> str:
        """The text of a node."""
        found = self._value(node)
        return self._condition(node) if found is None else found

    def _inside(self, node: ast.Node, place: int) -> str:
        """A part, in parentheses if its place needs something that holds together more tightly."""
        return f"({self.text(node)})" if self.every or _strength(node) < place else self.text(node)

    def _value(self, node: ast.Node) -> str | None:
        """A value as text, or None if the node is a condition."""
        match node:
            case ast.Literal(value):
                return _literal(value)
            case ast.Duration(size, name):
                return _duration(size, name)
            case ast.Word(name):
                return name
            case ast.Ref(name, attr, _, of):
                return f"{name}.{identifier(attr)}" if of is None else self.text(of)
            case ast.Aggregate():
                return self._aggregate(node)
            case ast.ListAggregate(function, of):
                return _called(function, self.text(of), node.distinct, node.share)
            case ast.Prev(name, attr, steps, gap):
                return f"PREV({name}.{identifier(attr)}, {steps}{'' if gap is None else ', ' + self._gap(gap)})"
            case ast.Place(name, by_key):
                return f"number of {name} among the events{' of its key' * by_key}"
            case ast.Case(whens, otherwise):
                found = "".join(f" WHEN {self.text(when)} THEN {self.text(then)}" for when, then in whens)
                return f"CASE{found}{'' if otherwise is None else f' ELSE {self.text(otherwise)}'} END"
            case ast.Call(function, args):
                return f"{function}({', '.join(map(self.text, args))})"
            case ast.Negative(of):
                return f"-{self._inside(of, _WHOLE)}"
            case ast.Arithmetic(op, left, right):
                if self.every:
                    return f"({self.text(left)} {op} {self.text(right)})"
                # a - (b - c) is not a - b - c, and sums of doubles depend on their order.
                own = _strength(node)
                return f"{self._inside(left, own)} {op} {self._inside(right, own + 1)}"
        return None

    def _aggregate(self, node: ast.Aggregate) -> str:
        of = f"{node.name}{'' if node.attr is None else '.' + identifier(node.attr)}"
        if node.of is not None:
            of = self.text(node.of)
        return _called(node.function, of, node.distinct, node.share)

    def _gap(self, gap: ast.Node | int) -> str:
        return self.text(gap) if isinstance(gap, ast.Node) else f"{gap} ticks"

    def _condition(self, node: ast.Node) -> str:
        """A condition as text."""
        match node:
            case ast.Compare(op, left, right):
                return f"{self.text(left)} {op} {self.text(right)}"
            case ast.Member(value, negated, items):
                members = items if isinstance(items, str) else "{" + ", ".join(map(self.text, items)) + "}"
                return f"{self.text(value)} {'NOT ' if negated else ''}IN {members}"
            case ast.IsNull(value, negated):
                return f"{self.text(value)} IS {'NOT ' if negated else ''}NULL"
            case ast.Like(value, pattern, negated, regex):
                word = "MATCHES" if regex else "LIKE"
                return f"{self.text(value)} {'NOT ' if negated else ''}{word} {self.text(pattern)}"
            case ast.Const(value):
                return str(value).upper()
            case ast.Not(of):
                return f"NOT {self._inside(of, _NOT)}"
            case ast.All(of):
                return " AND ".join(self._inside(part, _AND + 1) for part in of)
            case ast.Any(of):
                return " OR ".join(self._inside(part, _OR + 1) for part in of)
        raise TypeError(f"not a node: {node!r}")


def _strength(node: ast.Node) -> int:
    """How tightly a node's text holds together."""
    match node:
        case ast.Ref(_, _, _, of) if of is not None:
            return _strength(of)
        case ast.Arithmetic(op):
            return _SUM if op in "+-" else _PRODUCT
        case ast.Negative():
            return _SIGN
        case ast.Literal(int() | float() as value) | ast.Duration(value) if value < 0:
            return _SIGN
        case ast.Any():
            return _OR
        case ast.All():
            return _AND
        case ast.Not():
            return _NOT
    return _COMPARISON if isinstance(node, ast.CONDITIONS) else _WHOLE


def _called(function: str, of: str, distinct: bool, share: float | None) -> str:
    return f"{function}({'DISTINCT ' if distinct else ''}{of}{'' if share is None else f', {share!r}'})"


def _literal(value: int | float | str | bool) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return quoted(value) if isinstance(value, str) else repr(value)


def _duration(size: Fraction, name: str | None) -> str:
    if name is not None:
        return f"{name} {next(unit for unit, of_unit in UNITS.items() if of_unit == size)}"
    milliseconds = size * 1000
    return f"{milliseconds.numerator if milliseconds.denominator == 1 else float(milliseconds)!r} ms"
