"""Parses a query: structure, conditions, window, and the clauses that follow it."""

from __future__ import annotations

from dataclasses import replace

from chainlake.cep.language import ast
from chainlake.cep.language.errors.structure import NoPositiveEvent
from chainlake.cep.language.parsing.cursor import is_word
from chainlake.cep.language.parsing.errors import Misplaced, RepeatedAbsence, WrongQuantifier
from chainlake.cep.language.parsing.expected import Expected, WindowExpected
from chainlake.cep.language.parsing.lexer import Token
from chainlake.cep.language.parsing.ranking import RANKING, Ranked
from chainlake.cep.language.parsing.tail import SELECTING
from chainlake.cep.language.source_text import SourceText

_GROUPS = ("SEQ", "AND", "OR")
#: How queries begin in other languages.
_ELSEWHERE = ("SELECT", "MATCH_RECOGNIZE", "SEQUENCE", "EVENT", "SEQ", "EVERY", "FROM")
#: What may follow the window, in this order.
_TAIL = ("PAUSE", "MAXIMAL", "OUTERMOST", *SELECTING, "MEASURES", "EPISODES", *RANKING)


def parse(source: SourceText, start: int = 0) -> ast.Query:
    """The query that begins at character ``start`` of ``source``.

    Raises:
        DefinitionError: with line and column, for anything that the grammar does not allow.
    """
    return _Parser(source, start).query()


class _Parser(Ranked):
    def query(self) -> ast.Query:
        if not self.at_keyword("PATTERN"):
            raise Expected.start(self.source, self.token, elsewhere=self.at_word(*_ELSEWHERE))
        self.take()
        branches = self.alternatives() if self.at_keyword("OR") else (self.branch(where=False),)
        where = self.condition_after_where()
        within, counted = self.windows() if self.at_keyword("WITHIN") else (None, ())
        if within is None and not counted and not self.at_word("PAUSE", *RANKING):
            if self.at_word(*_TAIL):
                raise WindowExpected.before(self.source, self.token)
            sequence = self.at_symbol("-") or self.at_word("FOLLOWED", "FOLLOWEDBY", "THEN")
            raise WindowExpected.of(self.source, self.token, sequence=sequence, conditions=where is not None)
        pause = self.window("PAUSE") if self.at_word("PAUSE") else None
        keep = self.accept_word("MAXIMAL", "OUTERMOST")
        selection = self.selection() if self.at_word(*SELECTING) else None
        measures = self.measures() if self.at_word("MEASURES") else ()
        episodes = self.episodes() if self.at_word("EPISODES") else None
        if episodes is not None and self.at_word(*RANKING):
            raise Misplaced.ranking(self.source, self.token.at)
        ranking = self.ranking() if self.at_word(*RANKING) else None
        if self.token.kind != "end":
            raise self.after_the_end()
        kept = keep.text.upper() if keep else ""
        return ast.Query(branches, where, within, pause, kept, measures, counted, selection, episodes, ranking)

    def after_the_end(self) -> Exception:
        token = self.token
        if is_word(token, *_TAIL) or token.kind == "keyword" and token.text in ("WITHIN", "WHERE"):
            return Misplaced.clause(self.source, token)
        if is_word(token, "GAP", "EVENTS"):
            return Misplaced.event_window(self.source, token)
        return Misplaced.after_end(self.source, token)

    def alternatives(self) -> tuple[ast.Branch, ...]:
        opening = self.take()
        self.expect_symbol("(", "after OR")
        branches = [self.branch(where=True)]
        while self.accept_symbol(","):
            branches.append(self.branch(where=True))
        self.expect_symbol(")", "after the branches of OR")
        if len(branches) < 2:
            raise WrongQuantifier.branches(self.source, opening.at)
        return tuple(branches)

    def branch(self, *, where: bool) -> ast.Branch:
        at = self.token.at
        if self.at_keyword("NOT"):
            raise NoPositiveEvent.forbidden(self.source, at)
        structure = self.item(top=True)
        if isinstance(structure, ast.Event) and structure.role is not ast.Role.BOUND:
            raise NoPositiveEvent.gathered(self.source, at)
        condition = self.condition_after_where() if where else None
        return ast.Branch(structure, condition, at, self.score(branch=True) if where else None)

    # ---- structure

    def item(self, *, top: bool = False) -> ast.Structure:
        """A group or an event, with NOT, COLLECT or UNTIL around it."""
        if self.at_keyword(*_GROUPS):
            return self.nested(lambda: self.group(top=top))
        if self.at_word("ANY") and self.symbol_ahead("("):
            return self.nested(self.any_of)
        if self.at_keyword("NOT"):
            return self.around("NOT", ast.Role.FORBIDDEN)
        if self.at_word("COLLECT") and (self.symbol_ahead("(") or self.symbol_ahead("?") and self.symbol_ahead("(", 2)):
            return self.around("COLLECT", ast.Role.COLLECTED)
        if self.at_word("UNTIL") and self.symbol_ahead("("):
            return self.around("UNTIL", ast.Role.UNTIL)
        return self.event()

    def symbol_ahead(self, symbol: str, steps: int = 1) -> bool:
        token = self.ahead(steps)
        return token.kind == "symbol" and token.text == symbol

    def group(self, *, top: bool = False) -> ast.Group:
        opening = self.take()
        strict = self.strict(opening, top=top) if opening.text == "SEQ" else ""
        self.expect_symbol("(", f"after {opening.text}")
        items: list[ast.Structure] = []
        while True:
            item = self.item()
            if self.at_keyword("WHERE") and opening.text == "OR":
                raise Misplaced.where(self.source, self.token.at)
            # SEQ in SEQ and AND in AND add nothing to the outer group, except a window.
            same = isinstance(item, ast.Group) and item.kind == opening.text and item.within is None
            items.extend(item.items if isinstance(item, ast.Group) and same else (item,))
            if not self.accept_symbol(","):
                break
        self.expect_symbol(")", f"inside {opening.text}", other=",")
        if opening.text == "OR" and len(items) < 2:
            raise WrongQuantifier.alternatives(self.source, opening.at)
        within = None if top else self.own_window(opening)
        return ast.Group(opening.text, tuple(items), opening.at, strict, within=within)

    def own_window(self, opening: Token) -> ast.Within | None:
        """The window after a group inside another one."""
        if not self.at_keyword("WITHIN"):
            return None
        if opening.text == "OR":
            raise Misplaced.window(self.source, self.token.at)
        return self.window("WITHIN")

    def any_of(self) -> ast.Group:
        """``ANY(2, A a, B b, C c)``."""
        opening = self.take()
        self.expect_symbol("(", "after ANY")
        at = self.token.at
        of = self.whole_number("the number of events that ANY takes")
        items: list[ast.Structure] = []
        while self.accept_symbol(","):
            items.append(self.item())
        self.expect_symbol(")", "inside ANY", other=",")
        if not 1 <= of <= len(items):
            raise WrongQuantifier.any_of(self.source, at, of, len(items))
        within = None if self.depth == 1 else self.own_window(opening)
        return ast.Group("ANY", tuple(items), opening.at, "", of, within)

    def strict(self, opening: Token, *, top: bool) -> str:
        if not self.accept_word("STRICT"):
            return ""
        if not top:
            raise Misplaced.strict(self.source, opening.at)
        if not self.accept_word("OF"):
            return "stream"
        if not self.accept_word("KEY"):
            raise Expected.word(self.source, self.token, "KEY", "after OF")
        return "key"

    def around(self, word: str, role: ast.Role) -> ast.Event:
        """``NOT(…)``, ``COLLECT(…)`` or ``UNTIL(…)``."""
        opening = self.take()
        optional = role is ast.Role.COLLECTED and self.accept_symbol("?")
        self.expect_symbol("(", f"after {word}")
        if self.at_keyword(*_GROUPS, "NOT"):
            raise Misplaced.structure(self.source, self.token.at, word)
        event = self.event(role=role)
        self.expect_symbol(")", f"after the event of {word}")
        return replace(event, optional=optional, at=opening.at)

    def event(self, *, role: ast.Role = ast.Role.BOUND) -> ast.Event:
        any_type = self.at_symbol("*")
        kind = self.take() if any_type else self.expect_name("an event type")
        at = self.token.at
        sized = self.at_symbol("{")
        optional, kleene, size = self.quantifier()
        if role is not ast.Role.BOUND:
            self.check_quantifier(role, kind, at, (optional, kleene, sized))
            kleene = False
        named = self.token.kind == "word"
        if not named and (any_type or kind.kind == "quoted"):
            raise Expected.event_name(self.source, self.token, "*" if any_type else kind.shown)
        name = self.take().text if named else kind.text
        if named and self.at_symbol("*", "+", "?", "{"):
            raise Misplaced.quantifier(self.source, self.token, kind.text, name)
        return ast.Event(kind.text, name, kleene, role, size, optional, kind.at)

    def quantifier(self) -> tuple[bool, bool, ast.Size]:
        """Whether an event may be missing, whether it is repeated, and how often."""
        if self.accept_symbol("?"):
            return True, False, ast.ANY_SIZE
        if self.accept_symbol("*") or self.accept_symbol("+"):
            return False, True, ast.ANY_SIZE
        if not self.at_symbol("{"):
            return False, False, ast.ANY_SIZE
        at = self.take().at
        least = self.whole_number("a number of events")
        most: int | None = least
        if self.accept_symbol(","):
            most = None if self.at_symbol("}") else self.whole_number("a number of events")
        self.expect_symbol("}", "after the number of events")
        if least < 1 or most is not None and most < least:
            raise WrongQuantifier.size(self.source, at, least, most)
        return False, True, ast.Size(least, most)

    def check_quantifier(
        self, role: ast.Role, kind: Token, at: tuple[int, int], found: tuple[bool, bool, bool]
    ) -> None:
        """Only ``COLLECT`` takes a size, and nothing else."""
        optional, kleene, sized = found
        if role is ast.Role.COLLECTED:
            if optional:
                raise WrongQuantifier.optional_set(self.source, at, kind.text)
            if kleene and not sized:
                raise WrongQuantifier.repeated_set(self.source, at, kind.text)
        elif optional or kleene:
            word = "NOT" if role is ast.Role.FORBIDDEN else "UNTIL"
            raise RepeatedAbsence.of(self.source, at, word, kind.text)
