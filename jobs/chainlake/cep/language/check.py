"""Checks kinds of values against the columns of the events: what cannot be compared is an error, not FALSE."""

from __future__ import annotations

from collections.abc import Mapping

from chainlake.cep.language import ast, functions
from chainlake.cep.language.errors.kinds import Incomparable, NoSet, WrongKind
from chainlake.cep.language.errors.names import UnknownAttribute
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.values.like import problem_of

#: Columns of an events table that are not attributes (docs/tables.md); patterns refer to ``ts``, ``id`` and ``type``.
FIXED_COLUMNS = frozenset({"event_id", "event_date", "file_id", "line", "ingested_at"})
PSEUDO = frozenset({"ts", "id", "type"})
_ORDERED = frozenset({"number", "string", "time", "duration"})
#: Kinds that are unknown before events are seen.
OPEN = functions.OPEN


class Checker:
    """Finds the kind of every value: number, string, bool, time, duration, list, null, or any while unknown.

    Args:
        source: for errors.
        columns: column name to kind, or None if the columns are not known yet.
        strict: whether ``ts`` is a time (durations carry units) or a plain number.
    """

    def __init__(self, source: SourceText, columns: Mapping[str, str] | None, strict: bool) -> None:
        self.source = source
        self.columns = columns
        self.strict = strict

    def condition(self, node: ast.Node) -> None:
        """Check one condition.

        Raises:
            DefinitionError: an attribute is unknown, or kinds do not go together.
        """
        if isinstance(node, ast.Compare):
            self.compare(node)
        elif isinstance(node, ast.Member):
            self.member(node)
        elif isinstance(node, ast.IsNull):
            self.kind(node.value)
        elif isinstance(node, ast.Like):
            self.text_test(node)
        else:
            for part in node.parts():
                self.condition(part)

    def text_test(self, node: ast.Like) -> None:
        word = "MATCHES" if node.regex else "LIKE"
        kind = self.kind(node.value)
        if kind not in OPEN | {"string"}:
            raise WrongKind.no_text(self.source, node.at, word, kind)
        problem = problem_of(node.text, node.regex)
        if problem is not None:
            at = node.pattern.at if isinstance(node.pattern, ast.Literal) else node.at
            raise WrongKind.pattern(self.source, at, word, node.text, problem, regex=node.regex)

    def compare(self, node: ast.Compare) -> None:
        left, right = self.kind(node.left), self.kind(node.right)
        if "list" in (left, right):
            raise Incomparable.lists(self.source, node.at)
        if left in OPEN or right in OPEN:
            self.open_compare(node, left, right)
            return
        if left == right and (left in _ORDERED or node.op in ("=", "!=")):
            return
        pair = {left, right}
        if pair & {"time", "duration"} and "string" not in pair and "bool" not in pair:
            self.units(node, left, right)
        if node.op not in ("=", "!="):
            raise Incomparable.unordered(self.source, node.at, left, right)

    def open_compare(self, node: ast.Compare, left: str, right: str) -> None:
        if node.op not in ("=", "!=") and "bool" in (left, right):
            raise Incomparable.unordered(self.source, node.at, "bool", "bool")

    def units(self, node: ast.Node, left: str, right: str) -> None:
        pair = {left, right}
        if "number" in pair and "duration" in pair:
            raise Incomparable.bare_number(self.source, node.at)
        raise Incomparable.units(self.source, node.at, left, right)

    def member(self, node: ast.Member) -> None:
        kind = self.kind(node.value)
        if kind in ("list", "duration", "time"):
            raise WrongKind.in_set(self.source, node.at, kind)

    def kind(self, node: ast.Node) -> str:
        """The kind of a value."""
        match node:
            case ast.Literal(value):
                return "bool" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
            case ast.Duration():
                return "duration"
            case ast.Ref(name, attr):
                return self.attribute(node, name, attr)
            case ast.Aggregate():
                return self.aggregate(node)
            case ast.ListAggregate():
                return self.list_aggregate(node)
            case ast.Prev(name, attr):
                return self.attribute(node, name, attr)
            case ast.Place():
                return "number"
            case ast.Case():
                return self.case(node)
            case ast.Negative(of):
                kind = self.kind(of)
                if kind not in OPEN | {"number", "duration"}:
                    raise WrongKind.negative(self.source, node.at, kind)
                return kind
            case ast.Arithmetic():
                return self.arithmetic(node)
            case ast.Call():
                return self.call(node)
        raise TypeError(f"not a value: {node!r}")

    def case(self, node: ast.Case) -> str:
        kinds = set()
        for condition, value in node.whens:
            self.condition(condition)
            kinds.add(self.kind(value))
        if node.otherwise is not None:
            kinds.add(self.kind(node.otherwise))
        known = kinds - OPEN
        if len(known) > 1 or "list" in known:
            raise WrongKind.cases(self.source, node.at, known)
        return next(iter(known)) if known and "any" not in kinds else "any" if kinds - {"null"} else "null"

    def attribute(self, node: ast.Ref | ast.Aggregate | ast.Prev, name: str, attr: str) -> str:
        if attr == "ts":
            return "time" if self.strict else "number"
        if attr in PSEUDO:
            return "string"
        if self.columns is None:
            return "any"
        if attr in FIXED_COLUMNS:
            raise UnknownAttribute.fixed(self.source, node.at, name, attr)
        if attr not in self.columns:
            known = {*self.columns, *PSEUDO} - FIXED_COLUMNS
            raise UnknownAttribute.of(self.source, node.at, attr, known)
        return self.columns[attr]

    def aggregate(self, node: ast.Aggregate) -> str:
        if node.of is not None:
            kind = self.kind(node.of)
        elif node.attr is not None:
            kind = self.attribute(node, node.name, node.attr)
        else:
            return "number"
        if node.distinct and kind == "list":
            raise WrongKind.counted_lists(self.source, node.at)
        return self.given(node, kind)

    def list_aggregate(self, node: ast.ListAggregate) -> str:
        kind = self.kind(node.of)
        if kind not in OPEN | {"list"}:
            raise NoSet.single(self.source, node.at, node.function, node.of.name, node.type)
        return self.given(node, "number")

    def given(self, node: ast.Aggregate | ast.ListAggregate, kind: str) -> str:
        found = ast.AGGREGATES[node.function].gives(kind)
        if found is None:
            raise WrongKind.aggregate(self.source, node.at, node.function, kind)
        return found

    def arithmetic(self, node: ast.Arithmetic) -> str:
        left, right = self.kind(node.left), self.kind(node.right)
        for kind in (left, right):
            if kind in ("string", "bool", "list"):
                raise WrongKind.no_number(self.source, node.at, node.op, kind)
        if left in OPEN or right in OPEN:
            return self.open_arithmetic(left, right)
        result = _RESULT.get((node.op, left, right))
        if result is None:
            raise WrongKind.operands(self.source, node.at, node.op, left, right)
        return result

    def open_arithmetic(self, left: str, right: str) -> str:
        if "time" in (left, right) or "duration" in (left, right):
            return "any"
        return "any" if "any" in (left, right) else "null"

    def call(self, node: ast.Call) -> str:
        function = node.own or functions.lookup(node.function)
        assert function is not None, "resolve.py lets only known functions through"
        for number, refusal in function.constants.items():
            for arg in node.args[number : number + 1]:
                given = arg.value if isinstance(arg, ast.Literal) else None
                problem = refusal(given)
                if problem is not None:
                    raise WrongKind.constant(self.source, getattr(arg, "at", node.at), node.function, given, problem)
        kinds = tuple(self.kind(arg) for arg in node.args)
        if node.function == "seconds" and not self.strict:
            # Differences of plain numbers are already seconds.
            kinds = tuple("duration" if kind == "number" else kind for kind in kinds)
        result = function.result(kinds)
        if result is None:
            swapped = functions.lookup(node.function) is None
            raise WrongKind.arguments(self.source, node.at, node.function, kinds, swapped=swapped)
        return result


_RESULT: dict[tuple[str, str, str], str] = {
    ("+", "time", "duration"): "time",
    ("+", "duration", "time"): "time",
    ("-", "time", "duration"): "time",
    ("-", "time", "time"): "duration",
    ("+", "duration", "duration"): "duration",
    ("-", "duration", "duration"): "duration",
    ("*", "duration", "number"): "duration",
    ("*", "number", "duration"): "duration",
    ("/", "duration", "number"): "duration",
    ("/", "duration", "duration"): "number",
    **{(op, "number", "number"): "number" for op in "+-*/"},
}
