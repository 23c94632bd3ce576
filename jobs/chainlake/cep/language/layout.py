"""The layout of pattern files: one way to write spaces, keywords and indents; comments and front matter are kept.

Line breaks are the author's where a line may break (clauses, branches, items); PATTERN, WHERE and WITHIN begin lines,
and a line of more than ``WIDTH`` characters is broken at its outermost places.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chainlake.cep.language.lexer import pieces
from chainlake.cep.language.parsing.conditions import AGGREGATES

WIDTH = 100
_SAME = {"==": "=", "<>": "!=", "∈": "IN"}
_NO_SPACE_BEFORE = frozenset(",)}.")
_NO_SPACE_AFTER = frozenset("({.")


@dataclass
class _Piece:
    """A token or comment and what its place in the query says.

    Args:
        text: as it will be written.
        kind: of the token, or ``comment``.
        newlines: line breaks before it.
        mode: ``head``, ``structure``, ``condition`` or ``window``.
        depth: open parentheses and braces around it.
        base: depth of the WHERE it belongs to.
        rank: how far inside the place before it lies, if a line may break there.
        starts: whether it begins a line.
        unary: whether it is the sign of what follows.
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

    @property
    def indent(self) -> int:
        """Blanks before it if it begins a line."""
        if self.mode == "condition" or self.text == "WHERE":
            where = 2 * self.base + 2 if self.base else 0
            if self.text == "WHERE":
                return where
            return where + 2 * (self.depth - self.base) + (2 if self.text in ("AND", "OR") else 4)
        if self.mode == "structure" and self.text != "PATTERN":
            return 2 * max(self.depth - (self.text == ")"), 0 if self.text == ")" else 1)
        return 0 if self.text in ("PATTERN", "WITHIN") or self.mode == "head" or self.kind == "comment" else 2


@dataclass
class _Line:
    pieces: list[_Piece] = field(default_factory=list)
    comment: str = ""


def format_text(text: str, start: int) -> str:
    """``text`` in the standard layout.

    Args:
        text: a pattern file that parses.
        start: the character at which its query begins (after the front matter).

    Returns:
        the front matter as it is, and the query laid out; formatting the result again changes nothing.
    """
    found = _read(text, start)
    _place(found)
    _raise_null_tests(found)
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
        if word == "(" and found and found[-1].text.upper() in AGGREGATES:
            found[-1].text = found[-1].text.upper()
        found.append(_Piece(word, "keyword" if word == "IN" else piece.kind, newlines))
        newlines = 0
    return found


def _place(found: list[_Piece]) -> None:
    """Fill mode, depth, base and rank."""
    mode, depth, base = "head", 0, 0
    before: _Piece | None = None
    groups: list[bool] = []  # of each open parenthesis: whether it holds items or branches
    for piece in found:
        if piece.kind == "comment":
            piece.mode, piece.depth, piece.base = mode, depth, base
            continue
        if piece.text == "PATTERN":
            mode = "structure"
        elif piece.text == "WHERE" and piece.kind == "keyword":
            mode, base = "condition", depth
            piece.rank = depth + 0.5
        elif piece.text == "WITHIN" and piece.kind == "keyword":
            mode = "window"
        elif mode == "condition" and base and depth == base and piece.text in (",", ")"):
            mode = "structure"
        piece.mode, piece.depth, piece.base = mode, depth, base
        piece.starts = piece.text in ("PATTERN", "WITHIN") or piece.text == "WHERE" and not depth
        if mode == "condition" and piece.text in ("AND", "OR"):
            piece.rank = depth + 0.6
        if mode == "structure" and depth and (piece.text == ")" or before and before.text in ("(", ",")):
            piece.rank = depth if groups[-1] else None
        if piece.text == "-":
            piece.unary = before is None or before.kind in ("keyword", "symbol") and before.text not in (
                ")", "}", "TRUE", "FALSE",
            )  # fmt: skip
        if piece.text in ("(", "{"):
            depth += 1
            groups.append(mode == "structure" and before is not None and before.text in ("SEQ", "AND", "OR"))
        elif piece.text in (")", "}") and depth:
            depth -= 1
            groups.pop()
        before = piece


def _raise_null_tests(found: list[_Piece]) -> None:
    """Write IS and NULL in capitals where they are no names."""
    words = [piece for piece in found if piece.kind != "comment" and piece.mode == "condition"]
    for number, piece in enumerate(words):
        before = words[max(number - 2, 0) : number]
        if before and before[-1].text == "NOT":
            before.pop()
        if piece.kind == "word" and piece.text.upper() == "NULL" and before and before[-1].text.upper() == "IS":
            piece.text, before[-1].text = "NULL", "IS"


def _break(found: list[_Piece]) -> None:
    """Fill ``starts`` with the author's breaks, those that comments need, and those of long lines."""
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
    """Where the line could be broken."""
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
    if piece.text == "(":
        return before.kind != "word" and not (before.kind == "keyword" and piece.mode == "structure")
    return not (piece.mode == "structure" and piece.text in ("*", "+"))


def _written(lines: list[_Line]) -> list[str]:
    found: list[str] = []
    for number, line in enumerate(lines):
        first = line.pieces[0]
        if found and first.newlines > 1:
            found.append("")
        indent = first.indent
        if first.kind == "comment":
            # a comment begins where the line that follows it begins
            follows = next((x.pieces[0] for x in lines[number + 1 :] if x.pieces[0].kind != "comment"), None)
            indent = follows.indent if follows is not None else 0
        found.append(" " * indent + _joined(line.pieces) + ("  " + line.comment if line.comment else ""))
    return found
