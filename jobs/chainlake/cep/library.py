"""``match``: the engine as a function on dicts or an Arrow table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from numbers import Integral, Real
from typing import Any, TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.errors import WrongArgument
from chainlake.cep.events.columns import is_list
from chainlake.cep.events.errors import UnfitColumn, UnfitEvent, UnfitTimes
from chainlake.cep.events.history import add_histories
from chainlake.cep.language.declared.function import Code
from chainlake.cep.pattern import Pattern, compile_pattern
from chainlake.cep.search.find import find
from chainlake.cep.search.found.batch import MatchBatch
from chainlake.cep.search.options import SearchOptions
from chainlake.cep.search.statistics import Statistics
from chainlake.cep.values.texts import is_unicode
from chainlake.definitions.derived import Series, parse_history

#: Whole numbers up to this size are exact as doubles.
_EXACT = 2**53

#: One match: name -> event id, or name -> list of ids (by ts, then id) for a set; measure -> value. A ranked pattern
#: adds ``rank``, ``score``, ``criteria``, and, where there are several lists, ``scope_start``, ``scope_end``, ``per``.
Match = dict[str, Any]


class MatchOptions(TypedDict, total=False):
    """Options that are rarely needed.

    Args:
        key: the attribute that says which events are of one series, for histories and ``PREV``.
        derived: name to ``history(ATTRIBUTE, COUNT, LONGEST GAP)``, as in a source file (docs/semantics.md#histories):
            columns that are added to the events.
        ties_in_order: whether events of equal time follow one another in the order of (seq, id) (see
            ``SearchOptions``).
        shared_events, trailing, strategy: see ``SearchOptions``.
        functions: the functions that the front matter declares, by name; each takes arrays and returns one.
    """

    key: str | None
    derived: Mapping[str, str] | None
    ties_in_order: bool
    shared_events: bool
    trailing: bool
    strategy: str
    functions: Mapping[str, Callable[..., Any] | Code]


def match(
    pattern_text: str,
    events: Iterable[Mapping[str, Any]] | pa.Table,
    params: Mapping[str, Any] | None = None,
    order: Sequence[str] | None = None,
    *,
    backend: str = "auto",
    statistics: Statistics | None = None,
    **options: Unpack[MatchOptions],
) -> Iterator[Match]:
    """All matches of a pattern, each once (docs/semantics.md#what-a-match-is).

    If the events' ``ts`` are datetimes or timestamps, durations need units. If they are whole numbers, they count
    seconds, and so does a duration without a unit.

    Example:
        >>> import chainlake as cl
        >>> events = [
        ...     {"id": 1, "type": "A", "ts": 0, "attrs": {"x": 1.5}},
        ...     {"id": 2, "type": "B", "ts": 4, "attrs": {"x": 2.0}},
        ... ]
        >>> list(cl.match("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5", events))
        [{'a': 1, 'b': 2}]

    Args:
        pattern_text: a query, with or without front matter.
        events: dicts ``{id, type, ts, attrs}``, or a table with ``event_id`` (or ``id``), ``type``, ``ts`` and
            attributes; ``seq``, a whole number, may say which of the events of one ``ts`` is earlier.
        params: values for parameters and named sets.
        order: binding order of the positive names; it never changes the result.
        backend: ``auto``, ``numpy`` or ``compiled`` (see ``find``); it never changes the result.
        statistics: filled while matches are drawn.
        options: see ``MatchOptions``.

    Raises:
        DefinitionError: the pattern is wrong.
        InputError: the events are wrong (not dicts of this form, two different events with one id, no ts, mixed values
            in one attribute, text that is not Unicode).
        LimitExceeded: a limit of the front matter was exceeded.
        UsageError: the order does not fit or is not a sequence of names, or the parameters are not a mapping of names.
    """
    asked = prepared(pattern_text, events, params, order, options)
    batches = find(
        asked.pattern, asked.table, order=order, backend=backend, statistics=statistics, options=asked.search
    )
    return (one for batch in batches for one in as_dicts(asked.pattern, batch, asked.ids))


@dataclass(frozen=True)
class Asked:
    """A pattern and the events in which it is looked for.

    Args:
        pattern: the pattern, compiled for the columns of the events.
        table: the events, one row per id.
        ids: the id of every row, as it was given.
        search: the options of the search.
    """

    pattern: Pattern
    table: pa.Table
    ids: list[Any]
    search: SearchOptions


def prepared(
    pattern_text: str,
    events: Iterable[Mapping[str, Any]] | pa.Table,
    params: Mapping[str, Any] | None,
    order: Sequence[str] | None,
    options: MatchOptions,
) -> Asked:
    """The pattern and events that :func:`match` works with; arguments and errors are those of :func:`match`."""
    if not isinstance(pattern_text, str):
        raise WrongArgument.pattern(type(pattern_text).__name__)
    if params is not None and not (isinstance(params, Mapping) and all(isinstance(name, str) for name in params)):
        raise WrongArgument.params(type(params).__name__)
    if order is not None and not (isinstance(order, Sequence) and all(isinstance(name, str) for name in order)):
        raise WrongArgument.order()
    if isinstance(events, pa.Table):
        table, ids = from_table(events)
        columns = {field.name: field.type for field in table.schema if field.name != "event_id"}
    else:
        table, ids = from_dicts(events)
        columns = None
    derived = options.get("derived")
    if derived:
        table = _with_histories(table, options.get("key"), derived)
        if columns is not None:
            columns |= {name: table.schema.field(name).type for name in derived}
    strict = not pa.types.is_integer(table.schema.field("ts").type)
    series = Series(options.get("key"), lists=frozenset(field.name for field in table.schema if is_list(field.type)))
    codes = {
        name: one if isinstance(one, Code) else Code(one) for name, one in (options.get("functions") or {}).items()
    }
    given = {**(params or {}), **codes}
    pattern = compile_pattern(pattern_text, columns=columns, params=given, strict_units=strict, series=series)
    search = SearchOptions(
        ties_in_order=options.get("ties_in_order", False),
        shared_events=options.get("shared_events", False),
        trailing=options.get("trailing", False),
        strategy=options.get("strategy", "auto"),
    )
    return Asked(pattern, table, ids, search)


def _with_histories(table: pa.Table, key: str | None, derived: Mapping[str, str]) -> pa.Table:
    if key is None:
        raise WrongArgument.no_key()
    histories = [parse_history(name, text) for name, text in derived.items()]
    for name, one in zip(derived, histories, strict=True):
        if one is None or name in table.column_names:
            raise WrongArgument.derived(name)
    return add_histories(table, [key], [one for one in histories if one is not None])


def as_dicts(pattern: Pattern, batch: MatchBatch, ids: Sequence[Any]) -> Iterator[Match]:
    """The matches of a batch as mappings from names to ids, and from measures to their values.

    Args:
        pattern: the pattern.
        batch: its matches.
        ids: event id of every row of the events table.
    """
    repeated = {name.name for name in pattern.names if name.kleene}
    names = [name.name for name in pattern.names if name.name in batch.single or name.name in batch.kleene]
    single = {name: rows.tolist() for name, rows in batch.single.items()}
    sets = {name: (offsets.tolist(), rows.tolist()) for name, (offsets, rows) in batch.kleene.items()}
    ranking = pattern.extras.ranking
    unsaid = frozenset[str]() if ranking is None else ranking.rule.unsaid
    measures = {name: values.to_pylist() for name, values in batch.measures.items() if name not in unsaid}
    if ranking is not None and ranking.rule.per:
        measures["per"] = [json.loads(text) for text in measures["per"]]
    for i in range(batch.n):
        found: Match = {}
        for name in names:
            if name in sets:
                offsets, rows = sets[name]
                found[name] = [ids[row] for row in rows[offsets[i] : offsets[i + 1]]]
            else:
                one = ids[single[name][i]]
                found[name] = [one] if name in repeated else one
        for name, values in measures.items():
            found[name] = values[i]
        yield found


def from_dicts(events: Iterable[Mapping[str, Any]]) -> tuple[pa.Table, list[Any]]:
    """Dicts ``{id, type, ts, attrs}`` as a table with one row per id, and the ids as they were given.

    Raises:
        InputError: events that are not dicts of this form, two different ones with one id, missing fields, values of
            different kinds in one attribute, text that is not Unicode.
    """
    if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
        raise UnfitEvent.no_events(type(events).__name__)
    kept: dict[str, Mapping[str, Any]] = {}
    for number, event in enumerate(events, 1):
        _check_form(number, event)
        key = str(event["id"])
        other = kept.setdefault(key, event)
        if other is not event and _plain(other) != _plain(event):
            raise UnfitEvent.conflict(key)
    rows = list(kept.values())
    names = dict.fromkeys(name for event in rows for name in event.get("attrs") or {})
    for name in names:
        if not isinstance(name, str) or not is_unicode(name):
            raise UnfitEvent.no_name(name)
    ordered = any(event.get("seq") is not None for event in rows)
    clash = {"id", "type", "ts", "event_id", *(["seq"] if ordered else [])} & names.keys()
    if clash:
        raise UnfitEvent.taken_name(sorted(clash)[0])
    columns: dict[str, pa.Array] = {
        "event_id": _texts("id", list(kept)),
        "type": _texts("type", [str(event["type"]) for event in rows]),
        "ts": _times([event["ts"] for event in rows]),
    }
    if any(event.get("seq") is not None for event in rows):
        columns["seq"] = _attribute("seq", [event.get("seq") for event in rows])
    for name in names:
        columns[name] = _attribute(name, [(event.get("attrs") or {}).get(name) for event in rows])
    return pa.table(columns), [event["id"] for event in rows]


def _check_form(number: int, event: Any) -> None:
    if not isinstance(event, Mapping):
        raise UnfitEvent.no_dict(number, type(event).__name__)
    for field in ("id", "type", "ts"):
        if event.get(field) is None:
            raise UnfitEvent.lacks(field, event)
    attrs = event.get("attrs")
    if attrs is not None and not isinstance(attrs, Mapping):
        raise UnfitEvent.no_attrs(number, type(attrs).__name__)


def _texts(name: str, texts: list[str]) -> pa.Array:
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        raise _no_unicode(name, texts) from None


def _no_unicode(name: str, values: Iterable[Any]) -> UnfitColumn:
    wrong = next((value for value in values if isinstance(value, str) and not is_unicode(value)), None)
    return UnfitColumn.no_unicode(name, wrong)


def _plain(value: Any) -> Any:
    """The form in which events are compared: NaN is null, a null attribute counts as missing, and True is not 1."""
    if isinstance(value, Mapping):
        items = {name: _plain(item) for name, item in value.items()}
        return {name: item for name, item in items.items() if item is not None and item != {}}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, bool):
        return "bool", value
    return None if isinstance(value, float) and value != value else value


def _times(values: list[Any]) -> pa.Array:
    kinds = {type(value) for value in values}
    if kinds <= {int}:
        try:
            return pa.array(values, pa.int64())
        except OverflowError as error:
            raise UnfitTimes.beyond(error) from None
    if all(issubclass(kind, datetime) for kind in kinds):
        return pa.array(values, pa.timestamp("us", tz="UTC"))
    raise UnfitTimes.kinds()


def _kind(of: type) -> str:
    """The kind of a Python type; an attribute may mix only ``whole`` with ``double`` or ``Decimal``."""
    if not issubclass(of, bool):
        if issubclass(of, Integral):
            return "whole"
        if issubclass(of, Real):
            return "double"
    return next((kind.__name__ for kind in (datetime, date, str, bytes) if issubclass(of, kind)), of.__name__)


def _as_double(name: str, value: Any) -> float:
    """A number in a column of doubles; an error if it is a whole number that would change."""
    if isinstance(value, Integral) and abs(int(value)) > _EXACT:
        raise UnfitColumn.inexact(name, int(value))
    return float(value)


def _attribute(name: str, values: list[Any]) -> pa.Array:
    kinds = {_kind(of) for of in {type(value) for value in values} - {type(None)}}
    if len(kinds) > 1 and kinds not in ({"whole", "double"}, {"whole", "Decimal"}):
        raise UnfitColumn.two_kinds(name)
    try:
        if kinds == {"whole", "double"}:
            values = [None if value is None else _as_double(name, value) for value in values]
        return pa.array(values, from_pandas=False)
    except UnicodeEncodeError:
        raise _no_unicode(name, values) from None
    except OverflowError:
        raise UnfitColumn.number_beyond(name) from None
    except (pa.ArrowException, TypeError):
        raise UnfitColumn.two_kinds(name) from None


def from_table(events: pa.Table) -> tuple[pa.Table, list[Any]]:
    """A table with ``event_id`` (or ``id``), ``type``, ``ts``, reduced to one row per id, and the ids as given.

    Raises:
        InputError: two different rows with one id, missing columns, nulls in them.
    """
    if "event_id" not in events.column_names:
        if "id" not in events.column_names:
            raise UnfitColumn.absent("event_id")
        events = events.rename_columns(["event_id" if name == "id" else name for name in events.column_names])
    for column in ("event_id", "type", "ts"):
        if column not in events.column_names:
            raise UnfitColumn.absent(column)
        if events[column].null_count:
            raise UnfitColumn.incomplete(column, events[column].null_count)
    ids = events["event_id"].to_pylist()
    if len(set(ids)) < len(ids):
        first: dict[Any, int] = {}
        keep = [row for row, key in enumerate(ids) if first.setdefault(key, row) == row]
        others = [row for row, key in enumerate(ids) if first[key] != row]
        for row, same in zip(others, (first[ids[row]] for row in others), strict=True):
            if _plain(events.slice(row, 1).to_pylist()) != _plain(events.slice(same, 1).to_pylist()):
                raise UnfitEvent.conflict(ids[row])
        events = events.take(pa.array(keep))
        ids = [ids[row] for row in keep]
    index = events.column_names.index("event_id")
    return events.set_column(index, "event_id", pc.cast(events["event_id"], pa.string())), ids
