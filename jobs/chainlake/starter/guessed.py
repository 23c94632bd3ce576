"""The definitions that a guess gives: a source with its guesses in comments, and a pattern to begin with."""

from __future__ import annotations

import json
import re
from pathlib import Path

from chainlake.starter.guess import Column, Guess

#: A run of digits in a file's name that may be its date.
_DATES = ((r"\d{4}-\d\d-\d\d", r"\d{4}-\d\d-\d\d", "%Y-%m-%d"), (r"\d{8}", r"\d{8}", "%Y%m%d"))
_HEAD = """\
# Guessed from the first {rows:,} rows of {file}. Check what is marked with (?), and say what the attributes mean.
# Files of this source land in .chainlake/landing/{name}/. docs/sources.md of Chainlake has all keys.
"""


def source_name(file: Path) -> str:
    """A name for the source of a file: its own without dates, numbers and endings."""
    stem = file.name.split(".")[0]
    plain = re.sub(r"[\W\d_]+", "_", stem, flags=re.ASCII).strip("_").lower()
    return plain[:90] if plain and plain[0].isalpha() else "events"


def source_of(found: Guess) -> str:
    """The text of the source's file."""
    name = source_name(found.file)
    key = "series" if found.key is None else found.key.name
    lines = [_HEAD.format(rows=found.rows, file=_shown(found.file.name), name=name).rstrip()]
    lines += [f"description: {json.dumps(f'Rows of files such as {found.file.name}.', ensure_ascii=False)}"]
    lines += [f"key: {_aside(key, _key_words(found))}", f"type: {_aside('Row', 'the only kind of event')}"]
    lines += [] if found.zoned or found.form.startswith("epoch") else [f"zone: {_aside('UTC', '(?) of the times')}"]
    lines += ["attributes:", *(f"  {one.name}: {{type: {one.type}}}" for one in found.attributes)]
    told = "one event per key and time" if found.unique else "some rows have the same key and time: all are events"
    lines += [f"identity: {_aside('unique' if found.unique else 'multiset', told)}"]
    stem = found.file.name.split(".")[0]
    dated = next(((regex, form) for sign, regex, form in _DATES if _one(sign, stem)), None)
    if dated is not None:
        place = _one(dated[0], stem)
        assert place is not None
        pattern = f"{_plain(stem[: place.start()])}(?P<date>{dated[0]}){_plain(stem[place.end() :])}"
        lines += [f"path: '{pattern}'"]
    lines += ["formats:", "  - name: rows", f"    glob: {_quoted(_glob(found.file.name))}"]
    lines += [f"    delimiter: {json.dumps(found.delimiter)}"] if found.delimiter != "," else []
    lines += [f"    decimal: '{found.decimal}'"] if found.decimal != "." else []
    lines += [_time(found), *_map(found, key)]
    return "\n".join(lines) + "\n"


def pattern_of(found: Guess, source: str) -> str:
    """The text of a first pattern: an attribute rises, or changes, from one event of a key to a later one."""
    numbers = [one for one in found.attributes if one.type == "double"]
    key = None if found.key is None else found.key.name
    link = [] if key is None else [f"later.{key} = first.{key}"]
    if numbers:
        name = numbers[0].name
        means = f"{name} rises by a tenth or more"
        tests = [*link, f"first.{name} > 0", f"later.{name} >= first.{name} * share"]
        params = "params:\n  share: 1.1\n"
    else:
        name = found.attributes[0].name
        means, params = f"{name} changes", ""
        tests = [*link, f"later.{name} != first.{name}"]
    where = "\n  AND ".join(tests)
    return (
        f"---\n# A beginning: docs/language.md of Chainlake shows what a pattern can say.\nsource: {source}\n"
        f"description: {means} within {found.window}\n{params}output: [{name}]\n---\n"
        f"PATTERN SEQ(Row first, Row later)\nWHERE {where}\nWITHIN {found.window}\n"
    )


def _aside(value: str, comment: str) -> str:
    return f"{value}  # {comment}"


def _key_words(found: Guess) -> str:
    if found.key is None:
        return "(?) no column tells series apart, so all rows are of one"
    return f"(?) events of one {_shown(found.key.written)} are one series"


def _time(found: Guess) -> str:
    columns = _quoted(found.time[0]) if len(found.time) == 1 else f"[{', '.join(map(_quoted, found.time))}]"
    line = f"    time: {{column: {columns}, format: {_quoted(found.form)}}}"
    return _aside(line, "(?) or the month before the day, or behind it") if found.ambiguous else line


def _map(found: Guess, key: str) -> list[str]:
    columns: list[Column] = [*([] if found.key is None else [found.key]), *found.attributes]
    named = [f"      {one.name}: {_quoted(one.written)}" for one in columns if one.name != one.written]
    if found.key is None:
        named.insert(0, f"      {key}: {{constant: all}}")
    return ["    map:", *named] if named else []


def _one(sign: str, stem: str) -> re.Match[str] | None:
    """The only place where a name has a date of this form."""
    places = list(re.finditer(rf"(?<!\d){sign}(?!\d)", stem))
    return places[0] if len(places) == 1 else None


def _glob(name: str) -> str:
    """Files of the same name but for its numbers."""
    return re.sub(r"\d+", "*", re.sub(r"([\[\]?*])", r"[\1]", name.split(".")[0])) + ".*"


def _plain(text: str) -> str:
    return re.sub(r"\d+", r"\\d+", re.sub(r"([.^$*+?{}\[\]|()\\'])", ".", text))


def _quoted(text: str) -> str:
    """A text of YAML."""
    return "'" + text.replace("'", "''") + "'"


def _shown(text: str) -> str:
    """A name in a comment, which is one line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
