"""Every key of a source's YAML: which wrong value would pass silently? None of these may."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainlake.definitions.source import Source, load_source
from chainlake.errors import DefinitionError

BASE = """\
key: ticker
type: Bar
path: 'x_(?P<date>\\d{8})(?:_r(?P<revision>\\d+))?'
attributes:
  price: {type: double}
  size: {type: long}
  note: {type: string}
  open: {type: boolean}
formats:
  - glob: 'x_*'
    time: {column: ts}
    map: {price: Px}
"""
WIDE = BASE.replace("map: {price: Px}", "unpivot: {columns: [R1], into: price}")


def source(folder: Path, text: str) -> Source:
    path = folder / "x.yaml"
    path.write_text(text)
    return load_source(path)


#: What is replaced, by what, the line it stands in, and a part of what is said.
REFUSED = [
    # types and attributes
    ("type: Bar", "type: ' '", 2, "must not be blank"),
    ("type: Bar", "type: {column: kind, map: {}}", 2, "the map of types is empty"),
    ("type: Bar", "type: {column: kind, map: {T: }}", 2, "has no value"),
    ("type: Bar", "type: {column: kind, map: {T: [a]}}", 2, "must be a string"),
    ("type: Bar", "type: {column: kind, map: {' T': Trade}}", 2, "white space"),
    ("type: double", "type: double, min: 5, max: 1", 5, "min is above max"),
    ("type: double", "type: double, min: .5", 5, "must be a number"),
    ("type: double", "type: double, min: .nan", 5, "must be a number"),
    ("type: double", "type: double, required: yes", 5, "must be true or false"),
    ("type: double", "type: double, required: ", 5, "has no value"),
    ("  note:", "  größe:", 7, "cannot be the name of an attribute"),
    ("  note:", "  a b:", 7, "cannot be the name of an attribute"),
    ("key: ticker", "key: clé", 1, "cannot be the name of the key"),
    # zones and durations
    ("type: Bar", "type: Bar\nzone: right/UTC", 3, "zone 'right/UTC' is not known"),
    ("type: Bar", "type: Bar\nzone: localtime", 3, "zone 'localtime' is not known"),
    ("type: Bar", "type: Bar\nlag: 99999999999 d", 3, "not a duration"),
    ("type: Bar", "type: Bar\nlag:", 3, "has no value"),
    ("type: Bar", "type: Bar\nderived: {h: 'history(price, 5, 0 s)'}", 3, "never has a value"),
    ("type: Bar", "type: Bar\nderived: {h: 'history(price, 5, 99999999999 d)'}", 3, "not understood"),
    # identity
    # paths
    ("(?P<date>\\d{8})(?:_r(?P<revision>\\d+))?", "(\\d{8})", 3, "no field of the path is named"),
    ("(?P<date>", "(?P<dat>", 3, "'dat' has no meaning here, and 'date' is not defined"),
    ("(?P<revision>", "(?P<revison>", 3, "'revison' has no meaning"),
    ("\\d{8}", "\\d{99999999999}", 3, "not a regular expression"),
    ("'x_(?P<date>", "'[x_(?P<date>", 3, "not a regular expression"),
    ("(?:_r(?P<revision>\\d+))?'", "'\nreplaces: [file_date]", 4, "needs the file's revision"),
    ("path: 'x_(?P<date>\\d{8})(?:_r(?P<revision>\\d+))?'", "path: {pattern: '(?P<key>x)', date_format: '%d%m%y'}", 3,
     "no date in the path"),
    ("path: 'x_(?P<date>\\d{8})(?:_r(?P<revision>\\d+))?'", "path: {pattern: '(?P<date>x)', date_format: '%d%m'}", 3,
     "does not give a complete date"),
    ("path: 'x_(?P<date>\\d{8})(?:_r(?P<revision>\\d+))?'", "path: {pattern: '(?P<date>x)', date_format: '%Q'}", 3,
     "%Q is not known"),
    # globs
    ("'x_*'", "''", 10, "is empty"),
    ("'x_*'", "'/data/x_*'", 10, "not a path within the landing folder"),
    ("'x_*'", "'./x_*'", 10, "not a path within the landing folder"),
    ("'x_*'", "'x\\*'", 10, "not a path within the landing folder"),
    ("'x_*'", "'x_{date:%Y%m%d}.csv'", 10, "has braces, which match only themselves"),
    ("'x_*'", "'x_*.{csv,txt}'", 10, "has braces, which match only themselves"),
    ("'x_*'", "'x_[z-a].csv'", 10, "holds no character"),
    ("'x_*'", "'x_*.part'", 10, "hidden or unfinished"),
    ("'x_*'", "'.x_*'", 10, "hidden or unfinished"),
    ("'x_*'", "'x_* '", 10, "white space"),
    ("'x_*'", "", 10, "has no value"),
    ("'x_*'", "'x_*'\n    members: ''", 11, "is empty"),
    ("type: Bar", "type: Bar\nexpect: ['x_{date:%Q}']", 3, "not a date format"),
    ("type: Bar", "type: Bar\nexpect: ['x_{date:Ymd}']", 3, "not a date format"),
    ("type: Bar", "type: Bar\nexpect: ['x_{date+99999999}']", 3, "too far away"),
    ("type: Bar", "type: Bar\nexpect: ['/x_{date}']", 3, "not a path within"),
    ("type: Bar", "type: Bar\nexpect: ['']", 3, "is empty"),
    ("type: Bar", "type: Bar\nexpect: ['x_*']", 3, "the same for all days"),
    # times
    *[("{column: ts}", f"{{column: ts, format: '{form}'}}", 11, what) for form, what in [
        ("%H:%M:%S %d", "does not give a complete date"),
        ("%m-%d %H:%M", "does not give a complete date"), ("%Y", "does not give a complete date"),
        ("%b %Y", "does not give a complete date"), ("%a %H:%M", "does not give a complete date"),
        ("%Y-%m-%d %Q", "%Q is not known"),
        ("%Y-%m-%d %s", "%s is not known"), ("%F %T", "%F is not known"), ("%Y-%-m-%d", "%-m is not known"),
        ("%Y-%m-%d %Z", "%Z is not known"), ("%c", "%c is not known"), ("%Y-%m-%d %", "ends with a lone %"),
        ("%Y-%m-%d %H:%H", "%H is given twice"), ("%Y-%m-%dT%z %H:%M", "%z is not at the end"),
        ("%Y-%m-%d %I:%M", "%I without %p"), ("%Y-%m-%d %H:%M %p", "%p without %I"),
        ("%Y-%m-%d %M", "without the part"),
        ("%Y-%m-%d %H:%S", "without the part"), ("%Y-%m-%d %H:%M.%f", "without the part"), ("%%", "neither a date"),
        (" %Y-%m-%d", "white space"), ("YYYY-MM-DD", "is not known"), ("epoch", "is not known"),
        ("%Y-%m-%d %U", "with a year and a weekday only"), ("%W %Y-%m-%d", "with a year and a weekday only"),
        ("%G-%m-%d %Y", "%G is the year of a week"), ("%G %V %u %j %Y", "%G is the year of a week"),
    ]],
    ("{column: ts}", "{column: [d, d], format: '%Y-%m-%d %H:%M'}", 11, "the column 'd' is given twice"),
    ("{column: ts}", '{column: ts, format: "%Y-%m-%d\\n%H:%M"}', 11, "contains a line break"),
    ("{column: ts}", "{column: [d, t], format: epoch_s}", 11, "one number, not 2 columns"),
    ("{column: ts}", "{column: ts, format: epoch_s, zone: Europe/Berlin}", 11, "the zone changes nothing"),
    ("{column: ts}", "{column: ts, latest: 2025-02-30}", 11, "must be a day"),
    ("{column: ts}", "{column: ts, latest: 20250201}", 11, "must be a day"),
    # cells
    ("map:", "skip_lines: -1\n    map:", 12, "0 or more"),
    ("map:", "encoding: base64\n    map:", 12, "not known"),
    ("map:", "encoding: rot13\n    map:", 12, "not known"),
    ("map:", "encoding: punycode\n    map:", 12, "not an encoding of text"),
    ("map:", "delimiter: '§'\n    map:", 12, "cannot be the delimiter"),
    ("map:", "delimiter: a\n    map:", 12, "cannot be the delimiter"),
    ("map:", "delimiter: '\\t'\n    map:", 12, "in double quotes"),
    ("map:", "delimiter: '\"'\n    map:", 12, "the quote must differ"),
    ("map:", "quote: '.'\n    map:", 12, "the quote must differ from the decimal"),
    ("map:", "quote: '_'\n    thousands: '_'\n    map:", 12, "the quote must differ from the decimal"),
    ("map:", "thousands: '-'\n    map:", 12, "cannot be the thousands"),
    ("map:", "thousands: '0'\n    map:", 12, "cannot be the thousands"),
    ("map:", "'null': [NA, ' -']\n    map:", 12, "white space"),
    ("map:", "'null': [NA, ~]\n    map:", 12, "list of strings"),
    ("map:", "columns: [ts, ticker, Px, size, note, open, size]\n    map:", 12, "given twice"),
    ("map:", "columns: [ts, ticker, Pz, size, note, open]\n    map:", 12, "no column 'Px'.*'Pz'"),
    ("map:", "columns: [t, ticker, Px, size, note, open]\n    map:", 12, "no column 'ts'"),
    # mappings
    ("price: Px", "prize: Px", 12, "unknown key"),
    ("price: Px", "price: ", 12, "has no value"),
    ("price: Px", "price: [Px]", 12, "must be a string"),
    ("price: Px", "price: {column: }", 12, "has no value"),
    ("price: Px", "price: ' Px'", 12, "cannot be the name of a column"),
    ("price: Px", "price: {scale: 0}", 12, "a scale of 0"),
    ("price: Px", "price: {round: 400}", 12, "from -15 to 15"),
    ("price: Px", "note: {scale: 2}", 12, "'scale' applies to numbers, but note is a string"),
    ("price: Px", "open: {sentinels: [0]}", 12, "'sentinels' applies to numbers, but open is a boolean"),
    ("price: Px", "price: {case: upper}", 12, "'case' applies to strings, but price is a double"),
    ("price: Px", "price: {constant: cheap}", 12, "the constant 'cheap' is not a double"),
    ("price: Px", "size: {constant: 1.5}", 12, "the constant '1.5' is not a long"),
    *[("price: Px", f"price: {{constant: '{text}'}}", 12, f"the constant '{text}' is not a double")
      for text in ("1_000", "1,000", "1,5", "١٢", "inf", "nan", "1e999", "0x10")],
    *[("price: Px", f"size: {{constant: '{text}'}}", 12, f"the constant '{text}' is not a long")
      for text in ("1_000", "9007199254740993", "9007199254740991.4", "1e400", "1e16", "1e-99999999999999999999")],
    ("price: Px", "open: {constant: maybe}", 12, "the constant 'maybe' is not a boolean"),
    ("price: Px", "note: {constant: ''}", 12, "a constant must not be blank"),
    ("price: Px", "note: {constant: }", 12, "has no value"),
    ("price: Px", "price: {sentinels: [NA]}", 12, "a sentinel must be a number"),
    ("price: Px", "price: {sentinels: [true]}", 12, "a sentinel must be a number"),
    ("price: Px", "price: {sentinels: [{value: low}]}", 12, "a sentinel must be a number"),
    ("price: Px", "price: {sentinels: [{value: 0, wen: {size: 0}}]}", 12, "a sentinel must be a number"),
    ("price: Px", "price: {sentinels: [{value: 0, when: {}}]}", 12, "a sentinel must be a number"),
    ("price: Px", "price: {sentinels: [{value: 0, when: {note: 0}}]}", 12, "is not understood"),
    ("price: Px", "price: {sentinels: [{value: 0, when: {size: about 0}}]}", 12, "is not understood"),
    # columns that a file may lack
    ("map:", "optional: [Pz]\n    map:", 12, "does not read"),
    ("map:", "optional: [ts]\n    map:", 12, "every event needs"),
    ("map:", "optional: [ticker]\n    map:", 12, "every event needs"),
    # wide rows
    *[("map: {price: Px}", f"{wide}", 12, what) for wide, what in [
        ("unpivot: {columns: [], into: price}", "no columns are named"),
        ("unpivot: {columns: [a, a], into: price}", "given twice"),
        ("unpivot: {columns: {a: x, b: x}, into: price}", "given twice"),
        ("unpivot: {columns: {a: }, into: price}", "has no value"),
        ("unpivot: {columns: [a], into: prize}", "is not an attribute"),
        ("unpivot: {columns: [a], into: price}\n    map: {ticker: T}", "the key comes from"),
        ("unpivot: {columns: [a], into: price}\n    map: {price: Px}", "comes from the cells"),
        ("unpivot: {columns: [a], into: price}\n    map: {size: a}", "which unpivot turns into rows"),
        ("unpivot: {columns: [a], into: price}\n    map: {size: value}", "which unpivot turns into rows"),
        ("unpivot: {columns: [a], into: price}\n    map: {note: ticker}", "which unpivot turns into rows"),
    ]],
    *[("map: {price: Px}", f"unpivot: {{columns: {columns}, into: price}}", 11, "the time is read from .*unpivot turns")
      for columns in ("[ts]", "[R1, ts]", "{ts: left}")],
    ("{column: ts}\n    map: {price: Px}", "{column: value}\n    unpivot: {columns: [R1], into: price}", 11,
     "the time is read from the column 'value', which unpivot turns into rows"),
    ("{column: ts}\n    map: {price: Px}", "{column: [d, R1]}\n    unpivot: {columns: [R1], into: price}", 11,
     "the time is read from the column 'R1', which unpivot turns into rows"),
    *[("type: Bar", f"type: {{column: {column}, map: {{T: Trade}}}}", 10, f"'type' is read from the column '{column}'")
      for column in ("R1", "value")],
    # JSON maps
    *[("map: {price: Px}", f"kind: json_map\n    map: {{price: value, ticker: {{constant: A}}}}\n    {more}", 14,
       "has no meaning for a json_map") for more in
      ("header: [a]", "delimiter: ';'", "columns: [a]", "short_rows: fill", "optional: [a]")],
    ("map: {price: Px}", "kind: json_map\n    map: {price: value, ticker: {constant: A}, size: volume}", 13,
     "has the columns 'time' and 'value'"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "what"), REFUSED)
def test_a_wrong_value_is_refused_where_it_stands(tmp_path: Path, old: str, new: str, line: int, what: str) -> None:
    base = WIDE if what.startswith("'type' is read") else BASE
    assert old in base
    with pytest.raises(DefinitionError, match=what) as caught:
        source(tmp_path, base.replace(old, new, 1))
    error = caught.value
    assert error.file is not None and error.file.endswith("x.yaml")
    # What is wrong of unpivot with map can be told at either.
    assert error.line in (line, line + 1) if "unpivot" in new else error.line == line, error.summary
    assert error.column is not None


def test_around_needs_a_date_to_be_around(tmp_path: Path) -> None:
    text = BASE.replace("{column: ts}", "{column: ts, around: 36 h}")
    source(tmp_path, text)
    with pytest.raises(DefinitionError, match="the date in the file's path, but the path has none") as caught:
        source(tmp_path, text.replace("(?P<date>", "(?P<key>"))
    assert (caught.value.line, caught.value.column) == (11, 24)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{column: ts}", "{column: ts, format: '%d.%m.%Y %H:%M:%S.%f'}"),
        ("{column: ts}", "{column: ts, format: '%Y-%m-%dT%H:%M:%S%z'}"),
        ("{column: ts}", "{column: [d, t], format: '%b %d, %y %I:%M %p'}"),
        ("{column: ts}", "{column: ts, format: '%Y%j%H'}"),
        ("{column: ts}", "{column: ts, format: '%Y%m%d'}"),
        ("{column: ts}", "{column: ts, format: '%Y %U %w'}"),
        ("{column: ts}", "{column: ts, format: '%G-W%V-%u'}"),
        ("{column: ts}", "{column: ts, format: '%H:%M:%S.%f'}"),
        ("{column: ts}", "{column: ts, format: ms_of_day, zone: Europe/Berlin}"),
        ("'x_*'", "'2025/**/x_[0-9]?.csv'"),
        ("'x_*'", "'x_[[]a].csv'"),
        ("map:", 'delimiter: "\\t"\n    map:'),
        ("map:", 'thousands: "\'"\n    map:'),
        ("map:", "'null': ['', NA, -, 1.50, NO]\n    map:"),
        ("map:", "encoding: utf-16\n    map:"),
        ("map:", "optional: [Px, size]\n    map:"),
        ("price: Px", "price: {constant: 7}, size: {sentinels: [-1, {value: 0, when: {price: '> 0'}}]}"),
        ("price: Px", "note: {constant: 007}"),
        ("price: Px", "price: {constant: 1e-3}, size: {constant: 9007199254740992}, open: {constant: No}"),
        ("(?P<date>", "(?P<venue>x)(?P<date>"),
        ("type: Bar", "type: ON"),
    ],
)
def test_what_can_be_meant_is_read(tmp_path: Path, old: str, new: str) -> None:
    assert old in BASE
    source(tmp_path, BASE.replace(old, new, 1))


def test_texts_are_those_that_were_typed(tmp_path: Path) -> None:
    text = BASE.replace("map:", "'null': [NO, 1.50, 007]\n    map:").replace("Px}", "1.50, note: {constant: 007}}")
    form = source(tmp_path, text.replace("type: Bar", "type: {column: kind, map: {NO: Yes, 1: 2.0}}")).formats[0]
    assert form.nulls == ("NO", "1.50", "007")
    assert (form.mapping["price"].column, form.mapping["note"].constant) == ("1.50", "007")


def test_an_edit_of_how_a_name_is_typed_is_an_edit(tmp_path: Path) -> None:
    one, other = (source(tmp_path, BASE.replace("Px", column)).definition_hash for column in ("1.5", "1.50"))
    assert one != other
