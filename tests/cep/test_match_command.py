"""``chainlake match``: files in, JSON lines out; and the same engine on Arrow tables."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from chainlake.cep.library import match
from chainlake.cli.main import main
from chainlake.errors import InputError

ROWS = [
    {"id": "e1", "type": "A", "ts": 1, "attrs": {"x": 1.5, "k": "p"}},
    {"id": "e2", "type": "B", "ts": 3, "attrs": {"x": 2.0, "k": "p"}},
    {"id": "e3", "type": "B", "ts": 4, "attrs": {"x": 9.0, "k": "q"}},
]
QUERY = "PATTERN SEQ(A a, B b) WHERE a.k = b.k AND a.x < b.x WITHIN 5 s"
CSV = "id,type,ts,x,k\n" + "".join(
    f"{r['id']},{r['type']},2025-01-01T00:00:0{r['ts']}Z,{r['attrs']['x']},{r['attrs']['k']}\n" for r in ROWS
)

SPOILT = "id,type,ts,x\n3,A,1,1\n\n4,A,1,\n5,B,2,5.5.5\n6,B,3,7\n"


def run(capsys: pytest.CaptureFixture, *args: object) -> tuple[int, list[dict], str]:
    code = main(["match", *map(str, args)])
    out, err = capsys.readouterr()
    return code, [json.loads(line) for line in out.splitlines()], err


def write(folder: Path, form: str) -> Path:
    file = folder / f"events.{form}"
    if form == "csv":
        file.write_text(CSV)
    elif form == "csv.gz":
        file.write_bytes(gzip.compress(CSV.encode()))
    elif form == "jsonl":
        file.write_text("".join(json.dumps(r) + "\n" for r in ROWS))
    else:
        times = {r["id"]: datetime(2025, 1, 1, 0, 0, r["ts"], tzinfo=UTC) for r in ROWS}
        flat = [{"event_id": r["id"], "type": r["type"], "ts": times[r["id"]], **r["attrs"]} for r in ROWS]
        pyarrow.parquet.write_table(pa.Table.from_pylist(flat), file)
    return file


@pytest.mark.parametrize("form", ["csv", "csv.gz", "jsonl", "parquet"])
def test_every_form_gives_the_same(tmp_path: Path, capsys: pytest.CaptureFixture, form: str) -> None:
    assert run(capsys, QUERY, write(tmp_path, form)) == (0, [{"a": "e1", "b": "e2"}], "")


def test_pattern_file_columns_and_rows_without_id(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    pattern = tmp_path / "rise.sase"
    query = "PATTERN SEQ(E a, E+ b) WHERE a.v < b.v * least WITHIN 5 s"
    pattern.write_text(f"---\nsource: any\nparams: {{least: 1}}\n---\n{query}")
    file = tmp_path / "e.csv"
    file.write_text("time,v\n2025-01-01 00:00:00,1\n2025-01-01 00:00:01,2\n")
    assert run(capsys, pattern, file, "--ts", "time") == (0, [{"a": "e.csv:1", "b": ["e.csv:2"]}], "")
    file.write_text("time,v,what,no\n2025-01-01 00:00:00,1,E,7\n2025-01-01 00:00:01,2,E,8\n")
    assert run(capsys, pattern, file, "--ts", "time", "--type", "what", "--id", "no")[1] == [{"a": 7, "b": [8]}]


@pytest.mark.parametrize(
    ("query", "options", "code", "message"),
    [
        ("PATTERN SEQ(A a WITHIN 5 s", [], 3, "')' or ',' is expected"),
        ("PATTERN A a WHERE a.z = 1 WITHIN 5 s", [], 3, "no attribute z"),
        (QUERY, ["--ts", "when"], 4, "there is no column when"),
        (QUERY, ["--source", "stock", "--id", "id"], 2, "--source already names"),
        (QUERY, ["--source", "nix"], 2, "there is no source 'nix'"),
        (QUERY, ["--source", "../sources/stock"], 2, "there is no source '../sources/stock'"),
        ("nosuch.sase", [], 2, "the pattern cannot be read"),
    ],
)
def test_mistakes(
    tmp_path: Path, capsys: pytest.CaptureFixture, query: str, options: list[str], code: int, message: str
) -> None:
    found = run(capsys, query, write(tmp_path, "csv"), *options)
    assert found[0] == code and found[1] == [] and message in found[2]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", None, "there is no such file"),
        ("x.pdf", "a", "does not say what the file holds"),
        ("x.csv", "id,type\n1,A\n", "there is no column ts"),
        ("x.csv", "id,type,ts\n1,A,soon\n", "x.csv:2: 'soon' cannot be read as a time (key ts)"),
        ("x.jsonl", "{", "x.jsonl:1: this line is not JSON"),
        ("x.jsonl", '{"a": 1}\n\n[1]\n', "x.jsonl:3: this line holds a list, not an object"),
        ("x.jsonl", '{"ts": 1, "a": 1}\n{"ts": 2, "a": "x"}\n', "x.jsonl:2: a is text here, but a number before"),
        (
            "x.csv",
            "id,type,ts\n1,A,1\n\n2,B\n",
            "x.csv:4: this row has 2 cells, but the header has 3",
        ),
        ("x.csv", "id,type,ts\n1,A,1\n2,B,\xe9\n", "x.csv:3: this line is not UTF-8 text"),
        ("x.parquet", "PAR1", "the file is not a Parquet file"),
        ("x.csv.gz", "\x1f\x8b", "the file is cut off or damaged"),
        ("x.csv", "id,type,ts\n1,A,\n2,A,\n3,A,1\n", "x.csv:2: ts is missing here and in 1 other row"),
        ("x.csv", "id,type,ts\n1,A,1.5\n", "ts holds numbers, not times"),
        (
            "x.csv",
            "id,type,ts\n1,A,1700000000\n2,A,1700000000123\n",
            "x.csv:3: ts is 1700000000123 here, which is outside the years 1900 to 2199 if it counts s (key ts)\n"
            "hint: Name what it counts: --ts-unit ms.",
        ),
        ("x.csv", "id,ts\n1,1\n", "the events have no type"),
        ("x.csv", "id,type,ts,x\n1,A,1,1\n1,A,1,2\n", "two different events have the id 1"),
        ("x.csv", "id,type,ts,k,k\n1,A,1,1,1\n", "duplicate column k"),
        ("x.csv", "id,type,ts\n1,A,2025-01-01T00:00:00\n2,A,\n", "x.csv:3: ts is missing here (key ts)"),
        ("x.csv", "id,type,ts\n1,A,1\n2,,2\n", "x.csv:3: type is missing here (key type)"),
    ],
)
def test_files_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture, name: str, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, encoding="latin-1")
    code, found, err = run(capsys, "PATTERN SEQ(A a, B b) WITHIN 5 s", tmp_path / name)
    assert code in (2, 4) and found == [] and message in err


def test_an_empty_file_has_no_matches(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for name, content in (("x.csv", ""), ("y.csv", "id,type,ts,k,x\n"), ("z.jsonl", "")):
        (tmp_path / name).write_text(content)
        assert run(capsys, QUERY, tmp_path / name) == (0, [], "note: the files hold no events\n")


def test_folders_and_pipes_are_not_read(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for name, message in (
        (tmp_path, "this is a folder"),
        ("/dev/null", "not a regular file"),
        ("-", "not a regular file"),
    ):
        for options in ([], ["--source", "stock"]):
            code, found, err = run(capsys, QUERY, name, *options)
            assert (code, found) == (4, []) and message in err


def test_ids_are_texts_and_rows_without_one_get_one(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 5 s"
    file = tmp_path / "x.csv"
    file.write_text("id,type,ts\n007,A,1\n7,B,2\n,B,3\n,B,3\n")
    ids = ("7", "x.csv:3", "x.csv:4")
    assert run(capsys, query, file) == (0, [{"a": "007", "b": key} for key in ids], "")
    lines = tmp_path / "x.jsonl"
    lines.write_text('{"id": null, "type": "A", "ts": 1}\n{"id": "b", "type": "B", "ts": 2}\n{"type": "B", "ts": 3}\n')
    assert run(capsys, query, lines) == (0, [{"a": "x.jsonl:1", "b": key} for key in ("b", "x.jsonl:3")], "")


def test_a_blank_cell_is_no_value(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "x.csv"
    file.write_text('id,type,ts,who,n\na,A,1,,\nb,A,1,"",\nc,A,1,bob,1\nd,A,1,ann,2\n')
    for condition in ("a.who != bob", "a.who NOT IN {bob}", "NOT a.who = bob", "a.n != 1", "NOT a.n = 1"):
        assert run(capsys, f"PATTERN SEQ(A a) WHERE {condition} WITHIN 5 s", file) == (0, [{"a": "d"}], "")
    code, found, err = run(capsys, "PATTERN SEQ(A a) WHERE a.who = '' WITHIN 5 s", file)
    assert (code, found) == (0, []) and err.startswith(
        "note: 0 matches in 4 events; events that fit on their own: 0 of 4 A a."
    )


def test_times_with_and_without_offset_in_one_column(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "x.csv"
    file.write_text(
        "id,type,ts\na,A,2025-01-01\nb,B,2025-01-01T00:00:01Z\nc,B,2025-01-01T02:00:02+02:00\n"
        "d,B,2025-01-01 00:00:03.5\ne,B,2024-12-31T19:00:04-0500\nf,B,2025-01-01T00:00:06Z\n"
    )
    code, found, _ = run(capsys, "PATTERN SEQ(A a, B b) WITHIN 5 s", file)
    assert (code, [match["b"] for match in found]) == (0, ["b", "c", "d", "e"])


@pytest.mark.slow
def test_starts_without_pandas_and_spark(tmp_path: Path) -> None:
    file = write(tmp_path, "csv")
    code = (
        "import sys; from chainlake.cli.main import main; code = main(sys.argv[1:]); "
        "heavy = {'pandas', 'pyspark', 'deltalake', 'duckdb', 'airflow', 'great_expectations'} & set(sys.modules); "
        "print(sorted(heavy), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "match", QUERY, str(file)], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ('{"a": "e1", "b": "e2"}\n', "[]\n")


def test_arrow_tables() -> None:
    table = pa.table({"id": [1, 2, 2], "type": ["A", "B", "B"], "ts": [1, 2, 2], "x": [1, 2, 2]})
    assert list(match("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5", table)) == [{"a": 1, "b": 2}]
    with pytest.raises(InputError, match="no column ts"):
        list(match("PATTERN A a WITHIN 5", table.drop_columns(["ts"])))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_that_count_another_unit(tmp_path: Path, capsys: pytest.CaptureFixture, unit: str) -> None:
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    file = tmp_path / "x.csv"
    file.write_text(
        f"id,type,ts\na,A,{1_700_000_000 * scale}\nb,B,{1_700_000_005 * scale}\nc,B,{1_700_000_007 * scale}\n"
    )
    query = "PATTERN SEQ(A a, B b) WITHIN 6 s"
    assert run(capsys, query, file, "--ts-unit", unit) == (0, [{"a": "a", "b": "b"}], "")
    if unit == "s":
        file.write_text("id,type,ts\na,A,1700000000.25\nb,B,1700000006.25\nc,B,1700000006.250001\n")
        assert run(capsys, query, file, "--ts-unit", unit) == (0, [{"a": "a", "b": "b"}], "")
    file.write_text("id,type,ts\na,A,2024-01-01\n")
    assert "hint: Leave out --ts-unit." in run(capsys, query, file, "--ts-unit", unit)[2]


def test_digits_finer_than_a_microsecond_are_cut(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "x.csv"
    file.write_text("id,type,ts\na,A,2025-01-01 00:00:00.000000999Z\nb,B,2025-01-01T00:00:01.0000009Z\n")
    assert run(capsys, "PATTERN SEQ(A a, B b) WITHIN 1 s", file) == (0, [{"a": "a", "b": "b"}], "")


def test_typed_numbers_are_not_put_beside_texts(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    typed, bad = tmp_path / "a.parquet", tmp_path / "b.csv"
    pyarrow.parquet.write_table(pa.table({"id": [1], "type": ["A"], "ts": [1], "x": [2.5]}), typed)
    bad.write_text(SPOILT)
    for files in ((typed, bad), (bad, typed)):
        assert run(capsys, "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 s", *files) == (
            4, [], f"error: {bad}:5: '5.5.5' is not a number (key x)\n"
        )  # fmt: skip
    bad.write_text(SPOILT.replace("5.5.5", ""))
    assert run(capsys, "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 s", typed, bad)[0] == 0


def test_a_pattern_file_that_is_no_text_is_a_wrong_definition(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "p.sase"
    file.write_bytes(b"PATTERN A a\nWHERE a.x = '\xe9'\nWITHIN 1 s")
    wanted = f"{file}:2: the pattern is not UTF-8 text\nhint: Save the file as UTF-8.\n"
    assert run(capsys, file, write(tmp_path, "csv")) == (3, [], f"error: {wanted}")
    assert main(["explain", str(file)]) == 3
    assert capsys.readouterr().err == f"error: {wanted}"
    assert main(["lint", str(file)]) == 3
    assert f"error: {file}:2: " in (said := capsys.readouterr().out) and "not UTF-8 text" in said


def test_empty_texts_are_no_names(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = write(tmp_path, "csv")
    for option in ("--id", "--type", "--ts"):
        assert run(capsys, QUERY, file, option, "")[0] == 2
    assert run(capsys, "", file) == (2, [], "error: the pattern is empty\nhint: Give a file or a query in quotes.\n")


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ("%d/%m/%Y %I:%M", "%I without %p leaves open which half of the day is meant"),
        ("%Y %H:%M", "does not give a complete date"),
        ("%Y-%m", "does not give a complete date"),
        ("%Y-%m-%d %M", "%M is given without the part above it"),
        ("%Y-%m-%d %H %I %p", "%H and %I both give the hour"),
        ("%Y-%m-%d %p", "%p without %I changes nothing"),
        ("%Y-%m-%d %Z", "%Z is not known"),
        ("%Y-%m-%d %", "ends with a lone %"),
        ("%Y-%m-%d %Y", "%Y is given twice"),
        ("%H:%M", "names no year"),
        ("%%Y-%m-%d", "names no year"),
    ],
)
@pytest.mark.parametrize("column", ["ts", "x"])
def test_a_form_that_gives_no_time_is_refused_before_a_file_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture, form: str, says: str, column: str
) -> None:
    code, found, err = run(capsys, QUERY, tmp_path / "none.csv", "--type-of", f"{column}=date:{form}")
    assert code == 2 and found == [] and f"the form of dates '{form}' {says}" in err and "hint: " in err


@pytest.mark.parametrize(
    ("form", "good", "bad", "says"),
    [
        ("%a %Y-%m-%d", "Fri 2024-03-01", "Mon 2024-03-01", "%a of 2024-03-01 is Fri"),
        ("%A, %d %B %Y", "friday, 1 March 2024", "Sunday, 1 March 2024", "%A of 2024-03-01 is Friday"),
        ("%Y-%m-%d %u", "2024-03-01 5", "2024-03-01 6", "%u of 2024-03-01 is 5"),
        ("%d.%m.%Y (%j) %H:%M", "01.03.2024 (61) 10:30", "02.03.2024 (061) 10:30", "%d of 2024-03-01 is 01"),
        ("%Y %U %w %a", "2024 08 5 Fri", "2024 08 5 Sat", "contradicts itself"),
        # A day that its year does not have is none of the next one.
        ("%Y-%j", "2023-365", "2023-366", "is not a date of the form %Y-%j"),
        ("%Y-%j %z", "2023-365 +0100", "2023-366 +0100", "is not a date of the form %Y-%j %z"),
        ("%G-W%V-%u", "2020-W53-5", "2023-W53-1", "is not a date of the form %G-W%V-%u"),
        ("%Y %U %w", "2024 00 1", "2023 53 1", "is not a date of the form %Y %U %w"),
        ("%d%m%Y %H:%M%z", "01032024 10:00Z", "1112024 10:00Z", "is not a date of the form"),
    ],
)
def test_a_weekday_that_the_date_is_not_is_an_error_of_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture, form: str, good: str, bad: str, says: str
) -> None:
    file = tmp_path / "e.tsv"
    file.write_text(f"id\ttype\tts\n1\tA\t{good}\n")
    query = "PATTERN A a WITHIN 5 s"
    assert run(capsys, query, file, "--type-of", f"ts=date:{form}") == (0, [{"a": 1}], "")
    file.write_text(f"id\ttype\tts\n1\tA\t{good}\n2\tA\t{bad}\n")
    code, found, err = run(capsys, query, file, "--type-of", f"ts=date:{form}")
    assert code == 4 and found == [] and "e.tsv:3: " in err and bad in err and says in err


@pytest.mark.parametrize("name", ["id", "type", "ts"])
@pytest.mark.parametrize("value", [[1], [1, 2], ["x"], [], {"a": 1}, {}, [[1]], [None]])
def test_a_list_or_an_object_is_no_id_type_or_time(
    tmp_path: Path, capsys: pytest.CaptureFixture, name: str, value: object
) -> None:
    good = {"id": None, "type": "A", "ts": 1}
    file = tmp_path / "e.jsonl"
    # An id may be missing, so that the first one may come late.
    lines = [good, good] if name == "id" else []
    file.write_text("".join(f"{json.dumps(one)}\n\n" for one in [*lines, good | {name: value}]))
    code, found, err = run(capsys, "PATTERN A a WITHIN 5 s", file)
    kind = "an object" if isinstance(value, dict) else ""
    assert code == 4 and found == [] and "hint: Ids and types are text or numbers" in err
    assert f"e.jsonl:{2 * len(lines) + 1}: {name} is {kind}" in err and f" here (key {name})" in err


@pytest.mark.parametrize("name", ["id", "type", "ts"])
@pytest.mark.parametrize(
    ("value", "kind"), [(["x"], "a list"), ({"a": 1}, "an object"), (b"x", "bytes"), ([{"a": 1}], "a list")]
)
def test_neither_is_it_in_parquet(
    tmp_path: Path, capsys: pytest.CaptureFixture, name: str, value: object, kind: str
) -> None:
    file = tmp_path / "e.parquet"
    pyarrow.parquet.write_table(pa.Table.from_pylist([{"id": "1", "type": "A", "ts": 1} | {name: value}]), file)
    code, found, err = run(capsys, "PATTERN A a WITHIN 5 s", file)
    assert code == 4 and found == [] and f"e.parquet, row 1: {name} is {kind} here (key {name})" in err


def test_lists_and_objects_beside_them_are_columns_that_nothing_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text('{"id": 1, "type": "A", "ts": 1, "x": {"a": 1}}\n{"id": 2, "type": "A", "ts": 2, "y": ["b"]}\n')
    assert run(capsys, "PATTERN SEQ(A a, A b) WITHIN 5 s", file) == (0, [{"a": 1, "b": 2}], "")
    code, _, err = run(capsys, "PATTERN A a WHERE a.x = 1 WITHIN 5 s", file)
    assert code == 4 and "x holds struct<>, which conditions cannot use" in err


def test_an_order_of_text_and_number_is_an_error_and_not_always_true(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    code, found, err = run(capsys, "PATTERN A a WHERE a.k > 1 WITHIN 5 s", write(tmp_path, "csv"))
    assert (code, found) == (3, [])
    assert "a string and a number have no order" in err
    assert "never equal" not in err


def test_neighbours_of_a_key_name_the_option_for_it(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    query = "PATTERN SEQ STRICT OF KEY (A a, B b) WITHIN 5 s"
    code, _, err = run(capsys, query, write(tmp_path, "csv"))
    assert code == 3 and "--key COLUMN" in err
    assert run(capsys, query, tmp_path / "events.csv", "--key", "k")[1] == [{"a": "e1", "b": "e2"}]
