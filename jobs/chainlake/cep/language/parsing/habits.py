"""What people who know SQL, regular expressions or another pattern language write, and what is written here."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any, TypeVar, cast

from chainlake.cep.language.errors.kinds import UnfitExpression
from chainlake.cep.language.errors.names import UnknownFunction
from chainlake.cep.language.parsing.errors import Misplaced
from chainlake.cep.language.parsing.expected import Expected
from chainlake.cep.language.parsing.lexer import misspelt
from chainlake.errors import DefinitionError

#: What the text of a pattern has, as regular expressions, and what to write instead. None of it is correct here, except
#: for calls of declared functions.
_STRUCTURE = {
    r"^\s*sequence\b.*": "EQL's [A] [B] is SEQ(A a, B b) WHERE a.user = b.user WITHIN 1 min.",
    r"\bPATTERN\s*\(": "Neighbours are SEQ STRICT OF KEY (T a, T+ b), others SEQ(T a, T b). "
    "The type comes before the name.",
    r"\bDEFINE\b": "Conditions come after WHERE, joined by AND: WHERE b.x > PREV(b.x).",
    r"\bAFTER\s+MATCH\b|\bSKIP\s+(?:PAST|TO)\b|\b(?:ONE\s+ROW|ALL\s+ROWS)\s+PER\b":
        "Every match is reported, each once; MAXIMAL or OUTERMOST after the window keep the largest ones.",
    r"\bORDER\s+BY\b|\bLIMIT\b":
        "The best come first: RANK BY MAX(a.x) TOP 10 PER DAY, or PER ALL. Rows have no other order.",
    r"\bPARTITION\s+BY\b|\bGROUP\s+BY\b":
        "Equate the key (a.user = b.user), or write SEQ STRICT OF KEY.",
    r"(?:\bPATTERN\s+(?:every\s+)?|\bSEQ\s*\(\s*)\w+\s*=|\bPATTERN\s+every\b|->":
        "A sequence is written SEQ(A a, B b). The type comes first.",
    r"\bSTRICT\s+SEQ\b|\bAND\s+STRICT\b":
        "Neighbours are written SEQ STRICT (A a, B b), or SEQ STRICT OF KEY (A a, B b).",
    r"\bSTRICT\s+OF\s+(?!KEY\b)\w+": "KEY means the key of the source; for files, --key COLUMN names it.",
    r"\b\w+\s+\w+\{[\d\s,]*\}": "The number belongs after the type: B{2,3} b.",
    r"\w(?:[+*?]|\{[\d\s,]*\})[?+]": "Every length is a match, so none is greedy or lazy; MAXIMAL keeps the longest.",
    r"[(,]\s*!\s*\w|\bNOT\s+\w+\s+\w+\s*[,)]": "A forbidden event is written NOT(B b).",
    r"[(,]\s*\w+\s+\w+\s*\|(?!\|)": "Alternatives are written OR(A a, B b).",
    r"[(,]\s*'[^'\n]*'\s+\w+": 'A type that is not a plain word takes double quotes: SEQ("B b" x).',
    r"[(,]\s*\w+\s*:\s*\w+": 'The type comes before the name: SEQ(A a); one with a colon takes quotes: SEQ("a:b" x).',
    r"[(,]\s*[\w*]+\s+AS\s+\w+": "The name follows the type: SEQ(A a, B b).",
    r"\bWITHIN\s+'[^'\n]*'|\bINTERVAL\b[^,)\n]*": "A duration is a number and a unit: WITHIN 90 min.",
    r"\bWITHIN\s+[\d.]+\s*(?!PAUSE\b|TOP\b)\w+\s+\d+": "A duration has one number and one unit: 90 min.",
    r"\bWITHIN\s+[A-Za-z]+\s+[\d.]+": "The number of a duration comes first: WITHIN 5 min.",
    r"\bCOUNT\s*\(\s*(?:\*|\w+\.\*|\))": "COUNT(b) is the number of events of the name b.",
    r"\bPREV\s*\((?:\s*\w+\s*[),]|\s*[\w.]+\s*[-+*/])":
        "PREV(b.x, 1, 10 min): an attribute of an event; compute outside: PREV(b.x) + 1.",
    r"\b(?:FIRST|LAST)\s*\(\s*[\w.]+\s*,": "FIRST and LAST take no number: give that event a name of its own.",
    r"\bSECONDS\s*\([^()]*\)\s*(?:[<>!]?=|[<>])\s*[\d.]+\s*(?:ms|s|sec|min|m|h|d)\w*\b":
        "SECONDS gives a number: leave the unit out, or compare b.ts - a.ts <= 3 s.",
    r"\bSECONDS\s*\(\s*[\w.]+\s*\)": "It takes a difference of two times: SECONDS(b.ts - a.ts).",
    r"[<>=!]=?\s*[^\s,<>=]+\s+AS\s": "A measure is a value: CASE WHEN a.x > 3 THEN TRUE ELSE FALSE END AS big.",
}  # fmt: skip

#: The same for conditions and values, both of patterns and of single events.
_CONDITIONS = {
    r"\|\|": "Write OR. Strings cannot be concatenated: compare each of them.",
    r"(?<=\w)'(?=[^'\n]*(?:\n|\Z))": "A quote inside a string is written twice: 'it''s'.",
    r"<=>|===|!==|=!|=[<>]": "Values are compared by < <= > >= = and !=.",
    r"--[^\n]*|/\*|//": "A comment begins with #, and ends with its line.",
    r"\d(?:,\d{3}|_\d+)(?!\d)": "Numbers have no separators: 1000.",
    r"[\w.]+\s+(?:NOT\s+)?(?:ILIKE|RLIKE|REGEXP|REGEX|SIMILAR|GLOB|CONTAINS|STARTSWITH|ENDSWITH)\b":
        "Write Lower(a.x) LIKE 'ba%', or a.x MATCHES '(?i)^ba' for a regular expression.",
    r"\b(?:LIKE|MATCHES)\s+\w+\.\w+": "Write the string to look for in single quotes, or name a parameter.",
    r"\bLIKE\s+'[^'\n]*'\s+ESCAPE\b": "Write a backslash before a literal % or _: LIKE 'a\\%b'.",
    r"\bBETWEEN\s*\(|\bBETWEEN\s+[^\s,]+\s*,|\bBETWEEN\s+[^\s,]+\s+(?!AND\b)[^\s,]+":
        "a.x BETWEEN 1 AND 2, both ends included.",
    r"\b(?:IS_?NULL|NOT_?NULL)\b|[\w.]+\s+NOT\s+NULL\b|\bEXISTS\s*\([^()]*": "a.x IS NULL, or a.x IS NOT NULL.",
    r"\bCASE\s+(?!WHEN\b)\w": "CASE WHEN a.x = 1 THEN 'one' ELSE 'other' END.",
    r"\bI?IF\s*\([^()]*": "CASE WHEN a.x > 1 THEN 2 ELSE 3 END.",
    r"\bEXTRACT\s*\([^()]*": "Hour(a.ts, 'UTC'), Minute, Weekday and Date.",
    r"\bTHEN\s+[\w.]+\s*[<>=!]":
        "THEN gives a value, such as TRUE: CASE WHEN a.x > 1 AND a.y > 2 THEN TRUE ELSE FALSE END.",
    r"(?:\.|\b)ts\s*(?:[<>!]?=|[<>]|<>|BETWEEN)\s*'[^'\n]*'": "Compare a date: Date(a.ts, 'UTC') >= '2024-05-31'.",
    r"\b(?:HOUR|MINUTE|WEEKDAY|DATE)\s*\([^(),]*\)": "By which clock? Hour(a.ts, 'Europe/Berlin'), or 'UTC'.",
}  # fmt: skip

#: Functions of other languages, and what to write instead.
_CALLED = {
    "nvl ifnull zeroifnull": "Coalesce(x, y).",
    "concat": "Strings cannot be concatenated: compare each of them.",
    "substr substring left right startswith endswith contains": "s LIKE 'ab%', or s MATCHES '^ab'.",
    "char_length": "Length(s).",
    "ucase lcase toupper tolower": "Upper(s), or Lower(s).",
    "date_part datepart": "Hour(a.ts, 'UTC'), Minute, Weekday and Date.",
    "dayofweek day_of_week": "Weekday(a.ts, 'UTC'): Monday is 1.",
    "day month year date_format strftime to_char": "Date(a.ts, 'UTC') is a string: LIKE '2024-05-%'.",
    "now current_timestamp": "There is no current time: the same events give the same result at any time.",
    "pow": "Power(x, y).",
    "ln": "Log(x).",
    "ceiling trunc truncate": "Ceil(x), Floor(x), or Round(x).",
}

#: The same for functions that look at several events.
_OF_SEVERAL = {
    "lag prior": "PREV(b.x, 1, 10 min) is the value of the event before.",
    "next lead": "Give the next event a name of its own: SEQ STRICT (T a, T next).",
    "stdev stddev_samp stddev_pop": "STDDEV(b.x), that of a sample.",
    "variance var_samp": "Power(STDDEV(b.x), 2).",
    "dc dcount uniq approx_count_distinct": "COUNT(DISTINCT b.x).",
    "quantile percentile_cont percentile_approx": "PERCENTILE(b.x, 0.9).",
    "datediff date_diff timestampdiff timediff": "b.ts - a.ts <= 5 min, or SECONDS(b.ts - a.ts) as a number.",
}

#: The same in expressions of one event: functions for which models have other means.
_OF_ONE = {"lag prior": "Features of a model look back with transform: lag N, or diff."}


def _habits(written: dict[str, str]) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(text, re.IGNORECASE | re.DOTALL), hint) for text, hint in written.items()]


def _calls(called: dict[str, str]) -> dict[str, str]:
    return {name: hint for names, hint in called.items() for name in names.split()}


_HABITS, _HABITS_OF_ONE = _habits(_STRUCTURE | _CONDITIONS), _habits(_CONDITIONS)
_CALLS, _CALLS_OF_ONE = _calls(_CALLED | _OF_SEVERAL), _calls(_CALLED | _OF_ONE)
#: How many characters before and after an error are looked at, so that long texts take no longer.
_AROUND = 200
_NAME = re.compile(r"\w+")
#: The name of an event in a hint.
_EVENT = re.compile(r"\b([abc])\.(?=[A-Za-z\"])")
#: Errors that a misspelt word of the language may cause.
_GRAMMAR = (Expected, Misplaced, UnfitExpression)

Compiler = TypeVar("Compiler", bound=Callable[..., Any])


def advising(compile_text: Compiler) -> Compiler:
    """Decorates a compiler of texts with keyword options, so that its errors are :func:`advised`."""

    @wraps(compile_text)
    def compiled(text: str, **options: Any) -> Any:
        try:
            return compile_text(text, **options)
        except DefinitionError as error:
            raise advised(error, text) from None

    return cast(Compiler, compiled)


def advised(error: DefinitionError, text: str, *, of_one: bool = False) -> DefinitionError:
    """An error of a pattern; if it is in syntax of another language, its hint says what is written here.

    Args:
        error: with its line and column in the text.
        text: of the pattern with its front matter, or of an expression.
        of_one: whether the text is an expression of one event, whose attributes are written without its name.

    Returns:
        the error itself, or one with another hint.
    """
    hint = _hint(error, text, of_one)
    if of_one and hint is not None and len(set(_EVENT.findall(hint))) == 1:
        hint = _EVENT.sub("", hint)
    if hint == error.hint:
        return error
    changed = copy(error)
    changed.hint = hint
    return changed


def _hint(error: DefinitionError, text: str, of_one: bool) -> str | None:
    if error.line is None or error.column is None:
        return error.hint
    lines = text.split("\n")
    place = sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1
    name = _NAME.match(text, place)
    if name is not None and isinstance(error, UnknownFunction):
        return (_CALLS_OF_ONE if of_one else _CALLS).get(name[0].lower(), error.hint)
    begin = max(0, place - _AROUND)
    near = text[begin : place + _AROUND]
    for habit, hint in _HABITS_OF_ONE if of_one else _HABITS:
        if any(found.start() <= place - begin < found.end() for found in habit.finditer(near)):
            return hint
    if name is not None and isinstance(error, _GRAMMAR) and text[name.end() : name.end() + 1] not in ("(", "."):
        meant = misspelt(name[0])
        return error.hint if meant is None else f"Did you mean {meant}?"
    return error.hint
