"""A block's text columns as typed columns: type, key, time and attributes, and the first reason against each row."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as MappingType
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chainlake.days import US_PER_DAY, day_start_us
from chainlake.definitions.formats.format import EPOCHS, Format
from chainlake.definitions.formats.mappings import Mapping
from chainlake.definitions.source import Source
from chainlake.definitions.source_keys import Attribute
from chainlake.ingest.identity import cased, identity
from chainlake.ingest.rows import casts
from chainlake.ingest.rows.lines import KEPT
from chainlake.ingest.rows.zones import LocalTimes
from chainlake.schemas.quarantine import RowProblem
from chainlake.schemas.table import TIMESTAMP

#: Wall time and UTC never differ by more than this.
_ZONE_US = US_PER_DAY
_NOTHING = Mapping()


class TypedRows:
    """The rows of a block under a format's mapping.

    Args:
        source: says which attributes there are.
        n: number of rows.
        columns: their strings, by column.
        form: the format.
        fields: fields of the file's path.
        file_date: date in the file's path.

    Attributes:
        reasons: per row, 0 or 1 + the position in ``failures`` of the first thing found wrong with it.
        failures: pairs of reason code and column name.
    """

    def __init__(
        self,
        source: Source,
        n: int,
        columns: dict[str, pa.Array],
        form: Format,
        fields: MappingType[str, str],
        file_date: date | None,
    ) -> None:
        self.n = n
        self.reasons = np.zeros(n, np.int32)
        self.failures: list[tuple[RowProblem, str]] = []
        self._source = source
        self._form = form
        self._columns = columns
        self._fields = fields
        self._file_date = file_date
        self._origins: dict[str, pa.Array] = {}

    def fail(self, mask: np.ndarray, reason: RowProblem, name: str) -> None:
        """Note ``reason`` for the rows in ``mask`` that have none yet."""
        fresh = mask & (self.reasons == 0)
        if fresh.any():
            self.failures.append((reason, name))
            self.reasons[fresh] = len(self.failures)

    def given(self, name: str, row: int) -> str | None:
        """The text of ``name`` in ``row``, truncated."""
        value = (self._time_text() if name == "ts" else self._origin(name))[row].as_py()
        return value[:KEPT] if value is not None else None

    def kind(self) -> pa.Array:
        """The type of each row."""
        rule = self._source.type
        if rule.constant is not None:
            return repeat(rule.constant, self.n)
        texts = self._identity("type")
        self.fail(_null(texts), "missing", "type")
        if rule.map is None:
            return texts
        index = pc.index_in(texts, pa.array(list(rule.map), pa.string()))
        kind = pa.array(list(rule.map.values()), pa.string()).take(index)
        self.fail(_null(kind), "unknown_type", "type")
        return kind

    def key(self) -> pa.Array:
        """The key of each row."""
        key = self._identity(self._source.key)
        self.fail(_null(key), "missing", self._source.key)
        return key

    def wall(self) -> tuple[casts.Wall, np.ndarray]:
        """The times as written in the file, and a flag per row for wall times to be converted by the zone's rules."""
        rule = self._form.time
        day_us = day_start_us(self._file_date) if self._file_date is not None else None
        wall = casts.times(self._time_text(), rule.format, day_us)
        # Times far out of range are not converted: a zone has no rules for the year 1.
        near = _within(wall.micros, rule.bounds(self._file_date), _ZONE_US)
        return wall, wall.known & ~wall.is_utc & near

    def times(self, zone: LocalTimes, series: Callable[[int], object]) -> tuple[np.ndarray, np.ndarray]:
        """UTC microseconds of each row (0 if unknown), and a flag per row for whether they are known.

        Args:
            zone: converter for the file's wall times.
            series: position of a row → the series to which it belongs.
        """
        rule = self._form.time
        wall, local = self.wall()
        self.fail(wall.missing, "missing", "ts")
        self.fail(wall.bad, "bad_time", "ts")
        self.fail(wall.contradicting, "time_contradiction", "ts")
        micros = wall.micros.copy()
        if local.any():
            at = np.flatnonzero(local)
            micros[local] = zone.to_utc(micros[local], lambda row: series(int(at[row])))
        known = wall.known
        outside = known & ~_within(micros, (rule.earliest, rule.latest))
        # If times are numbers, mostly the unit is wrong: seconds read as milliseconds, or the other way round.
        self.fail(wall.beyond | outside, "time_range" if rule.format not in EPOCHS else "time_unit", "ts")
        known &= _within(micros, rule.bounds(self._file_date))
        self.fail(~known, "time_range", "ts")
        return np.where(known, micros, 0), known

    def attributes(self) -> dict[str, pa.Array]:
        """The attributes as typed columns."""
        texts: dict[str, pa.Array] = {}
        numbers: dict[str, casts.Cast] = {}
        for a in self._source.attributes:
            if a.type in ("double", "long"):
                texts[a.name] = self._plain(a.name)
                numbers[a.name] = casts.doubles(texts[a.name])
        plain = {name: cast.values for name, cast in numbers.items()}
        return {
            a.name: self._number(a, texts[a.name], numbers[a.name], plain) if a.name in numbers else self._other(a)
            for a in self._source.attributes
        }

    def _number(self, a: Attribute, texts: pa.Array, number: casts.Cast, plain: dict[str, pa.Array]) -> pa.Array:
        rule = self._form.mapping.get(a.name, _NOTHING)
        self.fail(number.bad, "not_a_number", a.name)
        values = casts.without_sentinels(number.values, rule.sentinels, plain)
        values = casts.convert(values, rule.scale, rule.offset, rule.round)
        if a.type == "long":
            whole = casts.longs(texts, rule, values)
            self.fail(whole.bad, "not_a_whole_number", a.name)
            values = whole.values
        else:
            self.fail(casts.not_finite(values), "out_of_range", a.name)
        for bound, outside in ((a.low, pc.less), (a.high, pc.greater)):
            if bound is not None:
                mask = pc.fill_null(outside(values, bound), False)
                self.fail(mask.to_numpy(zero_copy_only=False), "out_of_range", a.name)
        return self._required(a, values)

    def _other(self, a: Attribute) -> pa.Array:
        texts = self._cleaned(a.name)
        if a.type == "boolean":
            cast = casts.booleans(texts)
            self.fail(cast.bad, "not_boolean", a.name)
            return self._required(a, cast.values)
        if a.type == "timestamp":
            wall = casts.times(texts, "iso")
            self.fail(wall.bad, "bad_time", a.name)
            self.fail(wall.beyond, "time_range", a.name)
            # An attribute's times are in no order that would distinguish the two passes of a double hour.
            utc = np.where(wall.is_utc, wall.micros, LocalTimes(self._source.zone).to_utc(wall.micros))
            return self._required(a, pa.array(utc, mask=wall.missing | wall.bad | wall.beyond).cast(TIMESTAMP))
        return self._required(a, texts)

    def _required(self, a: Attribute, values: pa.Array) -> pa.Array:
        if a.required:
            self.fail(_null(values), "missing", a.name)
        return values

    def _origin(self, name: str) -> pa.Array:
        if name not in self._origins:
            self._origins[name] = self._found(name)
        return self._origins[name]

    def _found(self, name: str) -> pa.Array:
        rule = self._form.mapping.get(name, _NOTHING)
        if name not in self._form.mapping and name in self._columns:
            return self._columns[name]
        if rule.constant is not None:
            return repeat(rule.constant, self.n)
        if rule.path is not None:
            value = self._fields.get(rule.path)
            return repeat(value, self.n) if value is not None else pa.nulls(self.n, pa.string())
        column = self._columns.get(rule.column) if rule.column is not None else None
        return column if column is not None else pa.nulls(self.n, pa.string())

    def _identity(self, name: str) -> pa.Array:
        """The type or the key of each row."""
        return identity(self._origin(name), self._case(name))

    def _cleaned(self, name: str) -> pa.Array:
        """An attribute's strings; null if the format says that they mean "no value"."""
        return cased(casts.clean(self._origin(name), self._form.nulls), self._case(name))

    def _plain(self, name: str) -> pa.Array:
        """A numeric attribute's strings, with a decimal point."""
        texts, form = self._cleaned(name), self._form
        # A constant is in the definition, where the file's decimal and thousands signs do not apply.
        constant = form.mapping.get(name, _NOTHING).constant is not None
        return texts if constant else casts.plain_numbers(texts, form.decimal, form.thousands)

    def _case(self, name: str) -> str | None:
        return self._form.mapping.get(name, _NOTHING).case

    def _time_text(self) -> pa.Array:
        """The time's columns, joined by a space; null if any of them is blank."""
        if "ts" not in self._origins:
            parts = [casts.clean(self._columns[name], self._form.nulls) for name in self._form.time.columns]
            self._origins["ts"] = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, " ")
        return self._origins["ts"]


def repeat(text: str, n: int) -> pa.Array:
    """A column that repeats one string."""
    return pa.repeat(pa.scalar(text, pa.string()), n)


def _null(array: pa.Array) -> np.ndarray:
    return np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False))


def _within(micros: np.ndarray, days: tuple[date, date], reach_us: int = 0) -> np.ndarray:
    first, last = (day_start_us(day) for day in days)
    return (micros >= first - reach_us) & (micros < last + US_PER_DAY + reach_us)
