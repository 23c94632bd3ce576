"""Sets aside the parts of a pattern file that cannot be read, so that the rest of its text keeps its place."""

from __future__ import annotations

import re

from chainlake.cep.language.parsing.errors import RepeatedAbsence
from chainlake.cep.language.parsing.expected import WindowExpected
from chainlake.cep.language.parsing.lexer import pieces
from chainlake.errors import DefinitionError

_OPERATOR = re.compile(r"[-+*/<>=,.(!]+|AND|OR|NOT|WHERE|IN", re.ASCII)


def is_fence(line: str) -> bool:
    """Whether a line begins or ends the front matter."""
    return line.rstrip() == "---"


def query_start(text: str) -> int:
    """Where the query begins if the front matter cannot be read."""
    lines = text.splitlines(keepends=True)
    fences = [i for i, line in enumerate(lines) if is_fence(line)]
    if len(fences) > 1:
        return sum(map(len, lines[: fences[1] + 1]))
    starts = (i for i, line in enumerate(lines) if line.lstrip().upper().startswith("PATTERN"))
    return sum(map(len, lines[: next(starts, len(lines))]))


def without(text: str, start: int, error: DefinitionError) -> str | None:
    """``text`` with the condition or window that holds ``error`` replaced by one that can be read, or None."""
    lines = text.splitlines(keepends=True)
    offset = sum(map(len, lines[: (error.line or 1) - 1])) + (error.column or 1) - 1
    found = [p for p in pieces(text, start) if p.kind not in ("space", "comment")]
    within = next((p for p in found if p.kind == "keyword" and p.text.upper() == "WITHIN"), None)
    if within is None and isinstance(error, WindowExpected) and error.at_end:
        return text.rstrip() + "\nWITHIN 1 s"
    if within is not None and offset > within.begin:
        changed = text[: within.begin] + "WITHIN 1 s"
        return changed if changed != text else None
    if isinstance(error, RepeatedAbsence) and error.word == "NOT":
        return text[:offset] + " " + text[offset + 1 :]
    spans = [span for span in _conditions(text, start) if span[0] <= offset]
    if not spans:
        return None
    begin, end = spans[-1]
    old = text[begin:end]
    if len(old) < 4 or "\n" in old[:4] or old == "TRUE":
        return None
    blank = "".join("\n" if letter == "\n" else " " for letter in old)
    return text[:begin] + "TRUE" + blank[4:] + text[end:]


def _conditions(text: str, start: int) -> list[tuple[int, int]]:
    """Beginning and end of every condition joined by AND or OR at the top level of a WHERE."""
    found: list[tuple[int, int]] = []
    depth, where, begin, end = 0, -1, -1, -1
    between, before = False, ""

    def close() -> None:
        nonlocal begin
        if begin >= 0:
            found.append((begin, end))
        begin = -1

    for piece in pieces(text, start):
        if piece.kind in ("space", "comment"):
            continue
        word = piece.text.upper() if piece.kind == "keyword" else piece.text
        pause = piece.kind == "word" and word.upper() == "PAUSE" and depth == where and not _OPERATOR.fullmatch(before)
        if where >= 0 and (word == "WITHIN" or pause or depth == where > 0 and word in (",", ")")):
            close()
            where = -1
        elif where >= 0 and depth == where and word in ("AND", "OR") and not (between and word == "AND"):
            close()
        elif where >= 0:
            begin = piece.begin if begin < 0 else begin
            end = piece.end
        if word == "WHERE":
            close()
            where = depth
        depth += (word in ("(", "{")) - (word in (")", "}"))
        if piece.kind == "word" and before != ".":
            depth += (word.upper() == "CASE") - (word.upper() == "END")
            between |= word.upper() == "BETWEEN"
        between &= word != "AND"
        before = word
    close()
    return found
