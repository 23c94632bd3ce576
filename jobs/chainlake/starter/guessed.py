"""The definitions made from a guess: a source with the guesses marked in comments, a first pattern, a first model."""

from __future__ import annotations

import json
import math
from datetime import date

from chainlake.definitions.formats.format import NULLS
from chainlake.starter.cells import Writing
from chainlake.starter.column_names import PLACE
from chainlake.starter.file_names import expected_of, glob_of, path_of
from chainlake.starter.guess import Column, Guess

_HEAD = """\
# Guessed from the first {rows:,} rows of {file}. Check what is marked with (?), and say what the attributes mean.
# Files of this source land in .chainlake/landing/{name}/. docs/sources.md of Chainlake has all keys.
"""


_ZONE = "(?) check this first: if the file has local times, name their zone, such as America/New_York"
#: Two values of each type, in a test of a first pattern.
_TWO = {"double": ("1", "2"), "boolean": ("false", "true"), "string": ("a", "b")}
#: The largest number of nodes of a first model.
_NODES = 50


def source_of(found: Guess, name: str) -> str:
    """The text of the file of a source of this name."""
    key = _key_name(found)
    lines = [_HEAD.format(rows=found.rows, file=_shown(found.file.name), name=name).rstrip()]
    lines += [f"description: {json.dumps(f'Rows of files such as {found.file.name}.', ensure_ascii=False)}"]
    lines += [f"key: {_aside(key, _key_words(found))}", f"type: {_aside('Row', 'the only kind of event')}"]
    lines += [] if found.zoned or found.form.startswith("epoch") else [f"zone: {_aside('UTC', _ZONE)}"]
    lines += ["attributes:", *map(_attribute, found.attributes)]
    meaning = "one event per key and time" if found.unique else "some rows have the same key and time: all are events"
    lines += [f"identity: {_aside('unique' if found.unique else 'multiset', meaning)}"]
    file = found.file.name
    path, expected = path_of(file), expected_of(file)
    lines += [] if path is None else [_aside(f"path: '{path}'", "(?) the date is that of the rows")]
    if expected is not None:
        meaning = "(?) one file a day: a day waits for it, and is provisional without it"
        lines += [_aside(f"# expect: [{_quoted(expected)}]", meaning)]
    glob = _aside(f"    glob: {_quoted(glob_of(file))}", "(?) what varies in the names of such files")
    lines += ["formats:", "  - name: rows", glob]
    lines += [f"    delimiter: {json.dumps(found.delimiter)}"] if found.delimiter != "," else []
    lines += _numbers(found.writing)
    lines += [_time(found), *_map(found, key)]
    return "\n".join(lines) + "\n"


def pattern_of(found: Guess, source: str) -> str:
    """The text of a first pattern: an attribute rises, or changes, from one event of a key to a later one."""
    key = None if found.key is None else found.key.name
    link = [] if key is None else [f"later.{key} = first.{key}"]
    if found.rise is not None:
        name = found.rise.name
        means = f"{name} rises to {found.rise.share:g} times what it was, or more,"
        tests = [*link, f"first.{name} > 0", f"later.{name} >= first.{name} * share"]
        params = f"params:\n  share: {found.rise.share:g}\n"
        values = ("100", f"{math.ceil(100 * found.rise.share) + 1}")
    else:
        name = found.attributes[0].name
        means, params = f"{name} changes", ""
        values = _TWO[found.attributes[0].type]
        tests = [*link, f"later.{name} != first.{name}"]
    where = "\n  AND ".join(tests)
    return (
        f"---\n# A beginning: docs/language.md of Chainlake shows what a pattern can say.\nsource: {source}\n"
        f"description: {means} within {found.window}\n{params}output: [{name}]\n"
        f"{_tests(_key_name(found), name, values)}---\n"
        f"PATTERN SEQ(Row first, Row later)\nWHERE {where}\nWITHIN {found.window}\n"
    )


def _tests(key: str, name: str, values: tuple[str, str]) -> str:
    """Two tests of a first pattern: a value that becomes another one, and one that stays."""
    events = "event_id" if "id" in (key, name) else "id"
    text = "tests:\n"
    for title, second, matches in (("becomes", values[1], "[{first: 1, later: 2}]"), ("stays", values[0], "[]")):
        text += (
            f"  - name: {name} {title} {second}\n    events: |\n      {events},ts,{key},{name}\n"
            f"      1,2025-01-01T00:00:00Z,A,{values[0]}\n      2,2025-01-01T00:00:01Z,A,{second}\n"
            f"    matches: {matches}\n"
        )
    return text


def model_of(found: Guess, source: str, start: date) -> str | None:
    """The text of a first model, which explains the number that changes most by another; None if none can be made."""
    numbers = [one.name for one in found.attributes if one.type == "double"]
    others = [] if found.rise is None else [name for name in numbers if name != found.rise.name]
    if found.rise is None or not others or found.round is None or not 0 < len(found.series) <= _NODES:
        return None
    # The column next to it is taken, since columns that belong together usually stand side by side.
    at = numbers.index(found.rise.name)
    other = numbers[at + 1] if at + 1 < len(numbers) else numbers[at - 1]
    deviation = float(f"{found.rise.deviation:.2g}")
    eps = _aside(f"{deviation:.15g}", f"(?) how far predictions of {found.rise.name} may move")
    return (
        f"# A beginning: docs/model-change.md of Chainlake has all keys.\n"
        f"description: how {found.rise.name} depends on {other}\n"
        f"source: {source}\nstart: {start}\n"
        f"nodes: [{', '.join(map(_quoted, found.series))}]\n"
        f"response: {found.rise.name}\nfeatures: [{other}]\nintercept: true\n"
        f"round: {{length: {found.round}}}\nwindow: {{sliding: 24}}\n"
        f"metric: prediction\neps: {eps}\n"
        "detector: exact\n"
    )


def _key_name(found: Guess) -> str:
    """The name of the key column; all rows are one series where there is none."""
    return "series" if found.key is None else found.key.name


def _aside(value: str, comment: str) -> str:
    return f"{value}  # {comment}"


def _numbers(writing: Writing) -> list[str]:
    lines = [f"    decimal: '{writing.decimal}'"] if writing.decimal != "." else []
    lines += [f"    thousands: {_quoted(writing.thousands)}"] if writing.thousands is not None else []
    if writing.nulls:
        texts = ", ".join(map(_quoted, (*NULLS, *writing.nulls)))
        lines.append(_aside(f"    null: [{texts}]", f"(?) no value: {' '.join(writing.nulls)}"))
    return lines


def _attribute(one: Column) -> str:
    unit = f", unit: {_quoted(one.unit)}" if one.unit else ""
    line = f"  {one.name}: {{type: {one.type}{unit}}}"
    return _aside(line, "(?) the place along a road, of which the report draws maps") if one.name == PLACE else line


def _key_words(found: Guess) -> str:
    if found.key is None:
        return "(?) no column tells series apart, so all rows are of one"
    return f"(?) events of one {_shown(found.key.written)} are one series"


def _time(found: Guess) -> str:
    columns = _quoted(found.time[0]) if len(found.time) == 1 else f"[{', '.join(map(_quoted, found.time))}]"
    line = f"    time: {{column: {columns}, format: {_quoted(found.form)}}}"
    return _aside(line, "(?) day and month could be the other way round") if found.ambiguous else line


def _map(found: Guess, key: str) -> list[str]:
    columns: list[Column] = [*([] if found.key is None else [found.key]), *found.attributes]
    named = [f"      {one.name}: {_quoted(one.written)}" for one in columns if one.name != one.written]
    if found.key is None:
        named.insert(0, f"      {key}: {{constant: all}}")
    return ["    map:", *named] if named else []


def _quoted(text: str) -> str:
    """A string as a quoted YAML string."""
    return "'" + text.replace("'", "''") + "'"


def _shown(text: str) -> str:
    """A name for a comment, which must be one line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
