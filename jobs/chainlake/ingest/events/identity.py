"""Identity of events as Spark SQL expressions, and the same in plain Python (design §3, "Identity of events").

Ids are the first 128 bits of SHA-256, as 32 hex digits: Spark computes it natively, so millions of rows need no Python.
A number enters a hash through its bits, not its text: Java's text of a double differs between Java 17 and 21.
Spark's ``xxhash64`` of a single double is such a function of its bits, and a bijection: no two values share one.
"""

from __future__ import annotations

import hashlib

import pyarrow as pa

from chainlake.definitions.source import Source
from chainlake.schemas.table import Table

#: Separates the parts of a hashed text; cannot occur in a delivered line's cell without being data of that one cell.
SEPARATOR = "\x1f"


def event_id(source: str, kind: str, key: str, ts_us: int) -> str:
    """The id of an event of a source with identity ``unique``: source, type, key, microseconds since 1970."""
    return digest("unique", source, kind, key, str(ts_us))


def digest(*parts: str) -> str:
    """128 bits over texts, hex; lengths are hashed too, so that no two lists of parts share one text."""
    text = SEPARATOR.join(f"{len(part.encode())}{SEPARATOR}{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def quoted(name: str) -> str:
    """``name`` as a Spark SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def digest_sql(*parts: str) -> str:
    """Spark SQL for ``digest`` over string expressions that are never null."""
    pieces = [piece for part in parts for piece in (f"cast(octet_length({part}) AS string)", part)]
    return f"substr(sha2(concat_ws('\\u001f', {', '.join(pieces)}), 256), 1, 32)"


def unique_id_sql(source: Source) -> str:
    """Event id over the columns type, key, ts."""
    return digest_sql("'unique'", f"'{source.name}'", "type", quoted(source.key), _micros("ts"))


def multiset_id_sql(source: Source) -> str:
    """Event id over type, key, ts, the content columns ``_c1``, ``_c2`` and the copy number ``_copy``."""
    return digest_sql(
        "'multiset'", f"'{source.name}'", "type", quoted(source.key), _micros("ts"),
        "hex(_c1)", "hex(_c2)", "cast(_copy AS string)",
    )  # fmt: skip


def content_sql(source: Source) -> tuple[str, str]:
    """Two 64-bit hashes of the attributes: what makes two rows of one (type, key, ts) equal or different."""
    return _pair([(a.name, a.arrow_type) for a in source.attributes])


def row_hash_sql(table: Table) -> tuple[str, str]:
    """Two 64-bit hashes of a row's non-volatile columns, for the checksum of a day."""
    return _pair([(c.name, c.type) for c in table.columns if not c.volatile])


def _pair(columns: list[tuple[str, pa.DataType]]) -> tuple[str, str]:
    # xxhash64 passes over nulls, so which columns are null is hashed as well.
    nulls = ", ".join(f"cast({quoted(name)} IS NULL AS int)" for name, _ in columns)
    values = ", ".join(quoted(name) for name, _ in columns)
    return f"xxhash64(1, {nulls}, {values})", f"xxhash64(2, {nulls}, {values})"


def _micros(column: str) -> str:
    return f"cast(unix_micros({column}) AS string)"
