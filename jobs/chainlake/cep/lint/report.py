"""All errors of a pattern file, not only the first one, and warnings about what is legal but probably not intended.

The compiler stops at the first error. Lint continues: what is wrong is set aside (a key of the front matter, a
condition) and the rest is checked, each condition by itself. Only an error in the structure that PATTERN gives can hide
others. The compiler has the last word: lint finds errors if and only if the compiler does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from chainlake.cep.compiling.functions import own_functions
from chainlake.cep.compiling.names import check_event_names, check_rates, kinds_of, positive_names
from chainlake.cep.language import ast
from chainlake.cep.language.check import Checker
from chainlake.cep.language.errors.names import UnknownParameter
from chainlake.cep.language.errors.placed import Referred, as_in
from chainlake.cep.language.front_matter import FrontMatter, read_front_matter
from chainlake.cep.language.layout import format_text
from chainlake.cep.language.lists import Lists
from chainlake.cep.language.normal_form import Branch, normal_form
from chainlake.cep.language.parsing.expected import WindowExpected
from chainlake.cep.language.parsing.habits import advised
from chainlake.cep.language.parsing.lexer import pieces
from chainlake.cep.language.parsing.query import parse
from chainlake.cep.language.resolve import IN_A_MATCH, Resolver
from chainlake.cep.language.source_text import SourceText
from chainlake.cep.lint.observed import ObservedValues, unknown_values
from chainlake.cep.lint.ranking import ranked_values
from chainlake.cep.lint.set_aside import is_fence, query_start, without
from chainlake.cep.lint.warnings import warnings_of
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.definitions.derived import History, Series
from chainlake.definitions.errors import UnknownSource
from chainlake.errors import DefinitionError

if TYPE_CHECKING:
    import pyarrow as pa

#: How many errors are reported for one file at most.
MOST = 100


@dataclass(frozen=True)
class Schema:
    """What a source says about its events.

    Args:
        columns: what patterns may refer to, with Arrow types.
        types: the types that its events can have, or None for any type.
        histories: the derived ones among the columns.
        key: the column that says which events are of one series, or None.
        observed: the keys and types of actual events, or None if there are no events to look at.
    """

    columns: Mapping[str, pa.DataType]
    types: tuple[str, ...] | None
    histories: tuple[History, ...] = ()
    key: str | None = None
    observed: ObservedValues | None = None


@dataclass(frozen=True)
class Report:
    """What lint found in one file.

    Args:
        errors: in the order of their places.
        warnings: in the same order; empty if there are errors.
        pattern: the compiled pattern, None if there are errors.
    """

    errors: tuple[DefinitionError, ...]
    warnings: tuple[DefinitionError, ...]
    pattern: Pattern | None


def lint(
    text: str, *, name: str = "pattern", file: str | None = None, schema: Callable[[str], Schema] | None = None
) -> Report:
    """Find what is wrong or doubtful in a pattern file.

    Args:
        text: the file's text.
        name: the pattern's name.
        file: shown in findings.
        schema: gives the schema of a source by its name, or raises DefinitionError; None looks at no schema.
    """
    return _Lint(SourceText(text, file), name, schema).report()


class _Lint:
    def __init__(self, source: SourceText, name: str, schema: Callable[[str], Schema] | None) -> None:
        self.source = source
        self.name = name
        self.lookup = schema
        self.errors: list[DefinitionError] = []
        #: whether some of the front matter's parameters could not be read, so that an unknown one is not reported
        self.params_lost = False

    def report(self) -> Report:
        front, start = self.front_matter()
        schema = self.schema(front)
        query = self.query(start)
        checker = Checker(self.source, None if schema is None else kinds_of(schema.columns), True)
        if query is not None:
            self.meaning(query, front, schema, checker)
        pattern = self.compiled(schema)
        found = sorted(self.errors, key=lambda error: (error.line or 0, error.column or 0))
        if found or pattern is None:
            return Report(tuple(found), (), None)
        types = schema.types if schema else None
        key = None if schema is None else schema.key
        warnings = warnings_of(pattern, self.source, start, types, checker, key)
        if schema is not None and schema.observed is not None:
            warnings += unknown_values(pattern, self.source, schema.key or "", schema.observed, types)
        return Report((), tuple(warnings), pattern)

    def add(self, error: DefinitionError) -> None:
        """Keep an error once, with its line as it is in the file."""
        if self.params_lost and isinstance(error, UnknownParameter):
            return
        error = as_in(self.source, error)
        known = [(e.what, e.line, e.column) for e in self.errors]
        if (error.what, error.line, error.column) not in known and len(known) < MOST:
            self.errors.append(advised(error, self.source.text))

    def tried(self, work: Callable[..., Any], *args: Any) -> Any:
        """What ``work`` returns, or None if it finds an error, which is kept."""
        try:
            return work(*args)
        except DefinitionError as error:
            self.add(error)
            return None

    # ---- front matter and source

    def front_matter(self) -> tuple[FrontMatter, int]:
        """The front matter without the keys that are wrong, and the start of the query."""
        lines = self.source.text.splitlines(keepends=True)
        while True:
            try:
                return read_front_matter(SourceText("".join(lines), self.source.file))
            except DefinitionError as error:
                self.add(error)
                end = next((i for i, line in enumerate(lines) if i >= (error.line or 1) and is_fence(line)), None)
                if end is None:
                    return FrontMatter(), query_start(self.source.text)
                first, last = (error.line or 1) - 1, end
                if error.key is None:
                    first = next(i for i, line in enumerate(lines) if is_fence(line)) + 1
                else:
                    # The error may be on a line below the key; the whole key is set aside.
                    begins = [i for i in range(first + 1) if lines[i].startswith(f"{error.key}:")]
                    first = begins[-1] if begins else first
                    last = next((i for i in range(first + 1, end) if lines[i][:1] not in (" ", "\t", "#", "\n")), end)
                self.params_lost |= error.key in (None, "params", "sets")
                if first >= last:
                    return FrontMatter(), query_start(self.source.text)
                # Blanks keep the rest of the text in its place.
                lines[first:last] = [" " * (len(line) - 1) + "\n" for line in lines[first:last]]

    def schema(self, front: FrontMatter) -> Schema | None:
        if front.source is None or self.lookup is None:
            return None
        try:
            return self.lookup(front.source)
        except UnknownSource as error:
            at = front.places["source"]
            self.add(Referred.of(self.source, at, error.what, error.hint, key="source"))
            return None
        except DefinitionError as error:
            self.add(error)
            return None

    # ---- syntax

    def query(self, start: int) -> ast.Query | None:
        """The query, with TRUE for conditions that cannot be read; None if its structure cannot be read."""
        text = self.source.text
        for _ in range(MOST):
            try:
                return parse(SourceText(text, self.source.file), start)
            except DefinitionError as error:
                # A window that could not be read is missing from what is left.
                if not (isinstance(error, WindowExpected) and WindowExpected in map(type, self.errors)):
                    self.add(error)
                masked = without(text, start, error)
                if masked is None:
                    return None
                text = masked
        return None

    # ---- meaning

    def meaning(self, query: ast.Query, front: FrontMatter, schema: Schema | None, checker: Checker) -> None:
        own = self.tried(own_functions, self.source, self.name, front, {}) or {}
        resolver = Resolver(self.source, front.params, True, own)
        series = Series() if schema is None else Series(schema.key, schema.histories)
        lists = Lists(checker.columns, series)
        self.durations(query, resolver)
        reach = [frozenset(e.name for e in ast.events_of(b.structure)) for b in query.branches]
        bare = [replace(branch, where=None, score=None) for branch in query.branches]
        structures = [
            self.tried(normal_form, self.source, replace(query, branches=(b,), where=None, measures=())) for b in bare
        ]
        self.names(query)
        every = frozenset().union(*reach)

        def resolve(node: ast.Node, names: frozenset[str]) -> ast.Node:
            found = resolver.node(node, names)
            if not any(isinstance(part, ast.Aggregate) for part in found.walk()):
                return found  # Looking at all events for each condition may take long.
            return lists.query(replace(query, branches=tuple(bare), where=found, measures=())).where or found

        for number, names in enumerate(reach):
            for part in _parts(query.branches[number].where):
                resolved = self.condition(part, names, resolve, checker)
                if resolved is not None and structures[number] is not None:
                    lone = replace(query, branches=(replace(bare[number], where=resolved),), where=None)
                    self.tried(normal_form, self.source, lone)
        for part in _parts(query.where):
            resolved = self.condition(part, every, resolve, checker)
            if resolved is not None and None not in structures:
                lone = replace(query, branches=tuple(bare), where=resolved)
                self.tried(normal_form, self.source, lone)
        kept = frozenset(e.name for b in query.branches for e in ast.events_of(b.structure) if e.role in IN_A_MATCH)
        for measure in query.measures:
            value = self.tried(resolver.computed, measure.value, kept)
            if value is not None:
                one = replace(query, branches=tuple(bare), where=None, measures=(replace(measure, value=value),))
                self.tried(checker.kind, lists.query(one).measures[0].value)
        for node, names in ranked_values(query):
            value = self.tried(resolver.computed, node, names)
            if value is not None and not value.aggregated:  # only the whole query tells whether it is over lists
                self.tried(checker.kind, value)
        if None not in structures:
            derived = frozenset() if schema is None else frozenset(one.name for one in schema.histories)
            self.front(front, tuple(branch for those in structures for branch in those), checker.columns, derived)

    def durations(self, query: ast.Query, resolver: Resolver) -> None:
        if query.within is not None:
            self.tried(resolver.window, query.within)
        pauses = [query.pause] if query.episodes is None else [query.pause, query.episodes.pause]
        for pause in pauses:
            if pause is not None:
                self.tried(resolver.window, pause, "pause")

    def condition(
        self,
        node: ast.Node,
        names: frozenset[str],
        resolve: Callable[[ast.Node, frozenset[str]], ast.Node],
        checker: Checker,
    ) -> ast.Node | None:
        """The condition with its words replaced; None if something in it is wrong."""
        good = True
        for leaf in _leaves(node):
            resolved = self.tried(resolve, leaf, names)
            good &= resolved is not None
            if resolved is not None:
                before = len(self.errors)
                self.tried(checker.condition, resolved)
                good &= len(self.errors) == before
        return resolve(node, names) if good else None

    def names(self, query: ast.Query) -> None:
        self.tried(check_event_names, self.source, self.name, replace(query, branches=(), where=None))
        seen: list[ast.Event] = []
        for event in (e for b in query.branches for e in ast.events_of(b.structure)):
            group = ast.Branch(ast.Group("AND", (*seen, event)), None)
            before = len(self.errors)
            check = replace(query, branches=(group,), where=None)
            self.tried(check_event_names, self.source, "pattern", check)
            if len(self.errors) == before:
                seen.append(event)

    def front(
        self,
        front: FrontMatter,
        branches: tuple[Branch, ...],
        kinds: Mapping[str, str] | None,
        derived: frozenset[str],
    ) -> None:
        plain = replace(front, output=(), rates={})
        found = positive_names(self.source, branches, plain, kinds)
        for item in front.output:
            one = replace(plain, output=(item,))
            self.tried(positive_names, self.source, branches, one, kinds, derived)
        for name, rate in front.rates.items():
            one = replace(plain, rates={name: rate})
            self.tried(check_rates, self.source, one, found)

    def compiled(self, schema: Schema | None) -> Pattern | None:
        columns = None if schema is None else schema.columns
        before = self.params_lost
        self.params_lost = False
        try:
            return compile_pattern(
                self.source.text,
                name=self.name,
                file=self.source.file,
                columns=columns,
                series=None if schema is None else Series(schema.key, schema.histories),
            )
        except DefinitionError as error:
            # It has been found already, unless only several conditions or names together show it.
            self.add(error)
            return None
        finally:
            self.params_lost = before


def _parts(where: ast.Node | None) -> tuple[ast.Node, ...]:
    """The conditions that are joined by AND."""
    if where is None:
        return ()
    return where.of if isinstance(where, ast.All) else (where,)


def _leaves(node: ast.Node) -> Iterator[ast.Node]:
    """The comparisons, memberships and constants of a condition."""
    if isinstance(node, ast.All | ast.Any | ast.Not):
        for part in node.parts():
            yield from _leaves(part)
    else:
        yield node


def laid_out(text: str) -> str:
    """The text of a pattern file in the standard layout, with the same meaning.

    Raises:
        DefinitionError: the text does not compile.
        AssertionError: the layout would change the meaning or the comments.
    """
    before = compile_pattern(text)
    _, start = read_front_matter(SourceText(text))
    changed = format_text(text, start)
    after = compile_pattern(changed)
    kept = [[p.text.rstrip() for p in pieces(t, read_front_matter(SourceText(t))[1]) if p.kind == "comment"]
            for t in (text, changed)]  # fmt: skip
    same = [(one.definition_hash, one.extras.episodes) for one in (before, after)]
    if same[0] != same[1] or kept[0] != kept[1]:
        raise AssertionError(f"the layout changes the pattern:\n{changed}")
    return changed
