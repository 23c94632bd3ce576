"""The layout of pattern files: one way to write spaces, keywords and indents; comments and front matter are kept.

Where a line may break (clauses, branches, items, measures, criteria), the author's breaks are kept. PATTERN, WHERE,
WITHIN, MEASURES and EPISODES begin lines; so do RANK BY and TOP after the window, and PAUSE in place of the window. A
line of more than ``WIDTH`` characters is broken at its outermost places.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from chainlake.cep.language.ast.aggregates import AGGREGATES
from chainlake.cep.language.parsing.lexer import pieces
from chainlake.cep.ranking.kinds import PERIODS

WIDTH = 100
#: Words that begin a part after the window.
_FOLLOWING = frozenset("PAUSE MAXIMAL OUTERMOST CONTEXT SELECT PICK CONSUME PER MEASURES EPISODES".split())
#: Words of a ranking that, like the words of its periods, are written in capitals after RANK or TOP.
_RANKED = frozenset(
    "RANK BY NORM WEIGHT COMBINE TOP WITH TIES PER STEP OFFSET FIRST LAST FOR EACH DISTINCT ON AT MOST NON OVERLAPPING "
    "LEAST QUANTUM".split()
)
#: Words that end a part after the window.
_ENDING = frozenset({"MAXIMAL", "OUTERMOST", "MATCH", "TERMINATOR", "EVENTS", "KEY"})
#: Words of a ranking before which a long line may break.
_OPTIONS = frozenset({"FOR", "DISTINCT", "NON", "QUANTUM"})
#: Words that, like aggregates, are written in capitals before a parenthesis.
_CALLED = frozenset({"PREV", "COLLECT", "UNTIL", "ANY"})
_SAME = {"==": "=", "<>": "!=", "∈": "IN"}
_GROUPS = frozenset({"SEQ", "AND", "OR", "ANY", "STRICT", "KEY"})
_NO_SPACE_BEFORE = frozenset(",)}.")
_NO_SPACE_AFTER = frozenset("({.")


@dataclass
class _Piece:
    """A token or comment, and what follows from its place in the query.

    Args:
        text: as it will be written.
        kind: the kind of token, or ``comment``.
        newlines: line breaks before it.
        mode: ``head``, ``structure``, ``condition``, ``window``, ``measures`` or ``ranking``.
        depth: open parentheses and braces around it.
        base: depth of the WHERE that it belongs to.
        rank: how deeply nested the place before it is, if a line may break there; else None.
        starts: whether it begins a line.
        unary: whether it is the sign of what follows.
        reserved: whether it is a word that is reserved only in such a place.
        braced: whether it is in the braces of a size.
    """

    text: str
    kind: str
    newlines: int
    mode: str = "head"
    depth: int = 0
    base: int = 0
    rank: float | None = None
    starts: bool = False
    unary: bool = False
    reserved: bool = False
    braced: bool = False

    @property
    def indent(self) -> int:
        """How many blanks come before it if it begins a line."""
        if self.mode == "condition" or self.text == "WHERE":
            where = 2 * self.base + 2 if self.base else 0
            if self.text == "WHERE" or self.reserved and self.text == "RANK":
                return where
            return where + 2 * (self.depth - self.base) + (2 if self.text in ("AND", "OR") else 4)
        if self.mode == "structure" and self.text != "PATTERN":
            return 2 * max(self.depth - (self.text == ")"), 0 if self.text == ")" else 1)
        return 0 if self.opens or self.mode == "head" or self.kind == "comment" else 2

    @property
    def opens(self) -> bool:
        """Whether it is the word with which a part of the query begins."""
        if self.reserved:
            follows = self.text in ("PAUSE", "MEASURES", "EPISODES", "TOP")
            return follows or self.text == "RANK" and not self.depth
        return self.kind == "keyword" and self.text in ("PATTERN", "WITHIN") and not self.depth

    @property
    def ends_value(self) -> bool:
        """Whether a value may end with it."""
        if self.kind in ("number", "string", "quoted") or self.text in (")", "}", "TRUE", "FALSE"):
            return True
        return self.kind == "word" and not (self.reserved and self.text not in ("END", "NULL"))


@dataclass
class _Line:
    pieces: list[_Piece] = field(default_factory=list)
    comment: str = ""


#: What comes before the first piece and after the last.
_NOTHING = _Piece("", "end", 0)


def format_text(text: str, start: int) -> str:
    """``text`` in the standard layout.

    Args:
        text: a pattern file that parses.
        start: the character at which its query begins (after the front matter).

    Returns:
        the front matter as it is, and the query laid out; formatting the result again changes nothing.
    """
    found = _read(text, start)
    _reserve([piece for piece in found if piece.kind != "comment"])
    _place(found)
    _break(found)
    front = text[:start].rstrip()
    return (front + "\n" if front else "") + "\n".join(_written(_lines(found))) + "\n"


def _read(text: str, start: int) -> list[_Piece]:
    found: list[_Piece] = []
    newlines = 1
    for piece in pieces(text, start):
        if piece.kind == "space":
            newlines += piece.text.count("\n")
            continue
        word = _SAME.get(piece.text, piece.text)
        word = word.upper() if piece.kind == "keyword" else word.rstrip()
        before = found[-1].text.upper() if found and found[-1].kind == "word" else ""
        if word == "(" and (before in _CALLED or before in AGGREGATES):
            found[-1].text = before
        found.append(_Piece(word, "keyword" if word == "IN" else piece.kind, newlines))
        newlines = 0
    return found


def _place(found: list[_Piece]) -> None:
    """Fill mode, depth, base and rank."""
    mode, depth, base = "head", 0, 0
    before: _Piece | None = None
    groups: list[bool] = []  # for each open parenthesis: whether it holds items or branches
    braces: list[bool] = []  # for each open bracket: whether it is a brace
    for at, piece in enumerate(found):
        if piece.kind == "comment":
            piece.mode, piece.depth, piece.base = mode, depth, base
            continue
        if piece.text == "PATTERN" and piece.kind == "keyword":
            mode = "structure"
        elif piece.reserved and piece.text in ("PAUSE", "MEASURES", "EPISODES"):
            mode = "measures" if piece.text == "MEASURES" else "window"
        elif piece.reserved and piece.text in ("RANK", "TOP") and not depth:
            mode = "ranking"
        elif piece.text == "WHERE" and piece.kind == "keyword" or piece.reserved and piece.text == "RANK":
            mode, base = "condition", depth
            piece.rank = depth + 0.5
        elif piece.text == "WITHIN" and piece.kind == "keyword" and not depth:
            mode = "window"
        elif mode == "condition" and base and depth == base and piece.text in (",", ")"):
            mode = mode if piece.text == "," and _criterion_follows(found, at) else "structure"
        piece.mode, piece.depth, piece.base = mode, depth, base
        alone = before is not None and before.mode == "window" and piece.text == "PAUSE"
        piece.starts = piece.opens and not alone or piece.text == "WHERE" and piece.kind == "keyword" and not depth
        if piece.kind == "keyword" and piece.text in ("AND", "OR") and mode == "condition" and not piece.reserved:
            piece.rank = depth + 0.6
        if mode in ("measures", "ranking") and not depth:
            piece.rank = _rank_behind_the_window(piece, before, mode)
        piece.braced = mode == "structure" and bool(groups) and braces[-1]
        if (
            mode == "structure"
            and depth
            and not piece.braced
            and (piece.text == ")" or before and before.text in ("(", ","))
        ):
            piece.rank = depth if groups[-1] else None
        if piece.text == "-":
            piece.unary = before is None or before.kind in ("keyword", "symbol") and before.text not in (
                ")", "}", "TRUE", "FALSE",
            ) or before.reserved and _is_ranked(before.text)  # fmt: skip
        if piece.text in ("(", "{"):
            depth += 1
            braces.append(piece.text == "{")
            groups.append(mode == "structure" and before is not None and before.text in _GROUPS)
        elif piece.text in (")", "}") and depth:
            depth -= 1
            groups.pop()
            braces.pop()
        before = piece


def _is_ranked(word: str) -> bool:
    """Whether a word is one of rankings."""
    return word in _RANKED or word in PERIODS


def _rank_behind_the_window(piece: _Piece, before: _Piece | None, mode: str) -> float | None:
    """The rank of a measure, a criterion, or an option of a ranking."""
    if before is not None and before.text == ",":
        return 0.5
    return 0.4 if mode == "ranking" and piece.reserved and piece.text in _OPTIONS else None


def _criterion_follows(found: list[_Piece], at: int) -> bool:
    """Whether the comma at a place is between criteria of a branch, not between branches."""
    words = [piece for piece in found[at + 1 :] if piece.kind != "comment"][:2]
    return len(words) == 2 and words[0].text in ("MAX", "MIN") and words[1].text == "("


def _reserve(words: list[_Piece]) -> None:
    """Write words that are reserved only in certain places in capitals, and mark them."""
    cases, between, tail, depth = 0, False, False, 0
    ranked: int | None = None  # depth of the RANK or TOP to which the words belong
    for at, piece in enumerate(words):
        depth += (piece.text in ("(", "{")) - (piece.text in (")", "}"))
        ranked = None if ranked is not None and depth < ranked else ranked
        if piece.kind == "keyword":
            if piece.text == "WITHIN" and tail:
                piece.text = "within"  # of a clause of PICK
            tail |= piece.text == "WITHIN" and not depth
            if piece.text == "AND" and between:
                piece.reserved, between = True, False
            continue
        place = _Place(*(words[i] if 0 <= i < len(words) else _NOTHING for i in (at - 2, at - 1, at, at + 1)))
        if piece.kind != "word" or place.before.text == ".":
            continue
        word = piece.text.upper()
        follows = place.follows(tail)
        inner = cases > 0 and word in ("WHEN", "THEN", "ELSE", "END")
        if place.ranks(depth):
            ranked = depth
        in_ranking = ranked == depth and _is_ranked(word) and place.after.text not in (".", "(")
        measure = tail and word == "AS" and place.before.ends_value and place.after.kind == "word"
        if (
            in_ranking
            or follows
            or inner
            or measure
            or place.tests
            or place.structure
            or place.function
            or place.counts(tail)
        ):
            piece.text, piece.reserved = word, True
            cases += (word == "CASE") - (inner and word == "END")
            between |= word == "BETWEEN"
            tail |= follows


class _Place(NamedTuple):
    """A word and the pieces around it."""

    earlier: _Piece
    before: _Piece
    piece: _Piece
    after: _Piece

    def follows(self, tail: bool) -> bool:
        """Whether it begins a part after the window; ``tail``: whether such a part has begun before."""
        word, before = self.piece.text.upper(), self.before
        ended = before.ends_value or before.reserved and before.text in _ENDING
        known = word in _FOLLOWING and (word != "EPISODES" or self.after.text.upper() == "BY")
        return known and ended and (tail or word == "PAUSE" and self.after.kind in ("number", "word"))

    def ranks(self, depth: int) -> bool:
        """Whether a ranking, or the score of a branch, begins with it."""
        word, before, after = self.piece.text.upper(), self.before, self.after
        if not before.ends_value and not (before.reserved and before.text in _ENDING):
            return False
        top = word == "TOP" and not depth and after.kind in ("number", "word")
        return top or word == "RANK" and after.kind == "word" and after.text.upper() == "BY"

    def counts(self, tail: bool) -> bool:
        """Whether it is a word of a window in events or of PER, which come only in the ``tail``."""
        word, before, after = self.piece.text.upper(), self.before, self.after
        if not tail:
            return False
        if word == "GAP":
            return after.kind == "number"
        if word == "EVENTS":
            return before.kind == "number"
        if word in ("OF", "KEY"):
            return before.reserved and before.text in ("EVENTS", "OF")
        if word == "BY":
            return before.reserved and before.text == "EPISODES"
        return word in ("MATCH", "TERMINATOR") and before.reserved and before.text == "PER"

    @property
    def tests(self) -> bool:
        """Whether it is a word of IS NULL, BETWEEN, LIKE or MATCHES."""
        word, before, earlier, after = self.piece.text.upper(), self.before, self.earlier, self.after
        if word == "IS":
            return before.ends_value and after.text.upper() in ("NULL", "NOT")
        if word == "NULL":
            return any(one.reserved and one.text == "IS" for one in (before, earlier))
        tested = before.ends_value or before.text == "NOT" and before.kind == "keyword" and earlier.ends_value
        if word == "BETWEEN":
            return tested and (after.kind not in ("end", "symbol") or after.text in ("(", "-"))
        return word in ("LIKE", "MATCHES") and tested and after.kind in ("string", "word")

    @property
    def structure(self) -> bool:
        """Whether it is a word of SEQ STRICT OF KEY, or COLLECT before a question mark."""
        word, before, after = self.piece.text.upper(), self.before, self.after
        if word == "COLLECT":
            return after.text == "?" and after.kind == "symbol"
        strict = word == "STRICT" and before.text == "SEQ" and before.kind == "keyword"
        return strict or word in ("OF", "KEY") and before.reserved and before.text in ("STRICT", "OF")

    @property
    def function(self) -> bool:
        """Whether it is CASE, or DISTINCT after COUNT."""
        word, before, after = self.piece.text.upper(), self.before, self.after
        if word == "CASE":
            return after.kind == "word" and after.text.upper() == "WHEN"
        called = AGGREGATES.get(self.earlier.text) if before.text == "(" else None
        return word == "DISTINCT" and called is not None and called.counts and after.kind == "word"


def _break(found: list[_Piece]) -> None:
    """Set ``starts`` for the author's breaks, those that comments need, and those of long lines."""
    for number, piece in enumerate(found):
        before = found[number - 1] if number else None
        after = found[number + 1] if number + 1 < len(found) else None
        if piece.kind == "comment":
            piece.starts = piece.newlines > 0
            continue
        if before is not None and before.kind == "comment":
            piece.starts = True
        elif piece.rank is not None:
            joins = piece.mode == "condition" and piece.text in ("AND", "OR")
            piece.starts |= piece.newlines > 0 or joins and after is not None and after.newlines > 0
    while True:
        long = [line for line in _lines(found) if _width(line) > WIDTH and _places(line)]
        if not long:
            return
        for line in long:
            places = _places(line)
            outermost = min(float(piece.rank) for piece in places if piece.rank is not None)
            for piece in places:
                piece.starts |= piece.rank == outermost


def _places(line: _Line) -> list[_Piece]:
    """The pieces before which the line could be broken."""
    return [piece for piece in line.pieces[1:] if piece.rank is not None]


def _lines(found: list[_Piece]) -> list[_Line]:
    lines: list[_Line] = []
    for piece in found:
        if piece.kind == "comment" and not piece.starts:
            lines[-1].comment = piece.text
        elif piece.starts or not lines:
            lines.append(_Line([piece]))
        else:
            lines[-1].pieces.append(piece)
    return lines


def _width(line: _Line) -> int:
    return line.pieces[0].indent + len(_joined(line.pieces))


def _joined(line: list[_Piece]) -> str:
    text = line[0].text
    for before, piece in zip(line, line[1:], strict=False):
        text += (" " if _space(before, piece) else "") + piece.text
    return text


def _space(before: _Piece, piece: _Piece) -> bool:
    if piece.text in _NO_SPACE_BEFORE or before.text in _NO_SPACE_AFTER or before.unary:
        return False
    if piece.mode == "structure" and (piece.braced or piece.text in ("?", "{")):
        return False
    if piece.text == "(":
        if before.reserved:
            return before.text != "COLLECT"
        group = before.kind == "keyword" and piece.mode == "structure"
        return before.kind != "word" and before.text != "?" and not group
    # At the beginning of an event, a star is a type; elsewhere it belongs to the type before it.
    begins = before.text in ("(", ",", "PATTERN")
    return not (piece.mode == "structure" and piece.text in ("*", "+") and not begins)


def _written(lines: list[_Line]) -> list[str]:
    found: list[str] = []
    for number, line in enumerate(lines):
        first = line.pieces[0]
        if found and first.newlines > 1:
            found.append("")
        indent = first.indent
        if first.kind == "comment":
            # a comment is indented like the line that follows it
            follows = next((x.pieces[0] for x in lines[number + 1 :] if x.pieces[0].kind != "comment"), None)
            indent = follows.indent if follows is not None else 0
        found.append(" " * indent + _joined(line.pieces) + ("  " + line.comment if line.comment else ""))
    return found
