"""The functions that conditions may call, including any others that are registered (docs/semantics.md#functions)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.language.declared.function import Code, Declared, Heavy, Place
from chainlake.cep.values import operations, pairs
from chainlake.cep.values.texts import Words
from chainlake.cep.values.values import Value, absolute, correlation

#: Kinds that are unknown before events are seen.
OPEN = frozenset({"any", "null"})


@dataclass(frozen=True)
class Function:
    """A function of the language.

    Args:
        arity: how many arguments it takes, or how many at least and at most.
        result: gives, for the kinds of the arguments (``number``, ``duration``, ``list``, …, ``any`` if unknown), the
            kind of the result, or None if these kinds are not accepted.
        apply: the vectorised implementation; takes and returns ``chainlake.cep.values.values.Value``, or returns
            ``chainlake.cep.values.texts.Words``; takes constants as they are.
        scalar: for a function of one argument, the same for one value that is not null; if None, the event-order run
            calls ``apply`` on columns of one row, which is slower.
        constants: for each argument that must be a constant, a function that says what is wrong with a value, or None.
        of_text: instead of ``apply``, a function from a column of different strings to a column of results.
        heavy: instead of ``apply``, a function that is called with arrays of pairs (``chainlake.cep.heavy``).
    """

    arity: int | tuple[int, int]
    result: Callable[[tuple[str, ...]], str | None]
    apply: Callable[[tuple[Any, ...]], Value | Words] | None = None
    scalar: Callable[[Any], Any] | None = None
    constants: Mapping[int, Callable[[Any], str | None]] = field(default_factory=dict)
    of_text: Callable[[pa.Array], pa.Array] | None = None
    heavy: Heavy | None = None

    @property
    def takes(self) -> tuple[int, int]:
        """How many arguments it takes, at least and at most."""
        return (self.arity, self.arity) if isinstance(self.arity, int) else self.arity


_REGISTRY: dict[str, Function] = {}


def register(name: str, function: Function) -> None:
    """Make ``function`` callable in patterns as ``name`` (in any case)."""
    _REGISTRY[name.lower()] = function


def lookup(name: str) -> Function | None:
    """The function called ``name``, or None."""
    return _REGISTRY.get(name.lower())


def declared(entry: Declared, code: Code | None, place: Place) -> Function:
    """The function that an entry of a front matter declares.

    Args:
        entry: the entry.
        code: the code to call; with None, the pattern compiles but does not run.
        place: where the entry is.
    """
    heavy = Heavy(entry.name, code, entry.us, entry.symmetric, entry.result, entry.longest, place, entry.vectorised)
    takes = Code(lambda: None).takes if code is None else code.takes
    return Function(takes, _Gives(entry.result, entry.symmetric), heavy=heavy)


def scalar_of(name: str) -> Callable[[Any], Any] | None:
    """The function called ``name`` for one value that is not null, if it has such a form."""
    found = lookup(name)
    return None if found is None else found.scalar


def known() -> list[str]:
    """The names of all functions."""
    return sorted(_REGISTRY)


def _abs_kind(kinds: tuple[str, ...]) -> str | None:
    return kinds[0] if kinds[0] in ("number", "duration", "any", "null") else None


def _corr_kind(kinds: tuple[str, ...]) -> str | None:
    return "number" if all(kind in ("list", "any", "null") for kind in kinds) else None


def _takes(kind: str, result: str) -> Callable[[tuple[str, ...]], str | None]:
    """The rule of kinds for a function whose first argument is of one kind."""
    return lambda kinds: result if kinds[0] in OPEN | {kind} else None


def _numbers(kinds: tuple[str, ...]) -> str | None:
    return "number" if OPEN.union(kinds) <= OPEN | {"number"} else None


def _alike(kinds: tuple[str, ...]) -> str | None:
    """The one kind of all arguments, ordered or not; None if they differ."""
    known = set(kinds) - OPEN
    if len(known) > 1 or "list" in known:
        return None
    return next(iter(known)) if known else "any" if "any" in kinds else "null"


def _ordered(kinds: tuple[str, ...]) -> str | None:
    return None if "bool" in kinds else _alike(kinds)


def _zone_problem(zone: Any) -> str | None:
    if not isinstance(zone, str):
        return "a zone is a string such as 'Europe/Berlin' or 'UTC'"
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return f"there is no zone '{zone}'"
    return None


def _digits_problem(digits: Any) -> str | None:
    if isinstance(digits, int) and not isinstance(digits, bool) and abs(digits) <= MOST_DIGITS:
        return None
    return f"the number of digits must be a whole number from -{MOST_DIGITS} to {MOST_DIGITS}"


@dataclass(frozen=True)
class _Gives:
    """The kind of the result, whatever the arguments are; the halves of symmetric ones are of the same kinds."""

    result: str
    symmetric: bool

    def __call__(self, kinds: tuple[str, ...]) -> str | None:
        half = len(kinds) // 2
        halves = zip(kinds[:half], kinds[half:], strict=True) if self.symmetric and 2 * half == len(kinds) else ()
        return self.result if all(one == other or OPEN & {one, other} for one, other in halves) else None


def _built_in(
    name: str, call: Callable[..., Any], takes: int, us: float, result: Callable[[tuple[str, ...]], str | None]
) -> None:
    heavy = Heavy(name, Code(call, takes=(takes, takes)), us, symmetric=True, total=False)
    register(name, Function(takes, result, heavy=heavy))


def _texts(kinds: tuple[str, ...]) -> str | None:
    return "number" if OPEN.union(kinds) <= OPEN | {"string"} else None


def _abs(args: tuple[Value, ...]) -> Value:
    return absolute(args[0])


def _corr(args: tuple[Value, ...]) -> Value:
    return correlation(*args)


#: The most digits that ``Round`` takes: as many as a double has.
MOST_DIGITS = 15
#: How many arguments ``Least``, ``Greatest`` and ``Coalesce`` take at most.
MOST_VALUES = 20

register("abs", Function(1, _abs_kind, _abs, abs))
register("corr", Function(2, _corr_kind, _corr))
register("lower", Function(1, _takes("string", "string"), of_text=pc.utf8_lower))
register("upper", Function(1, _takes("string", "string"), of_text=pc.utf8_upper))
register("length", Function(1, _takes("string", "number"), of_text=pc.utf8_length))
register("round", Function((1, 2), _numbers, operations.rounded, constants={1: _digits_problem}))
register("floor", Function(1, _numbers, operations.floor))
register("ceil", Function(1, _numbers, operations.ceil))
register("sqrt", Function(1, _numbers, operations.square_root))
register("log", Function(1, _numbers, operations.logarithm))
register("exp", Function(1, _numbers, operations.exponential))
register("power", Function(2, _numbers, operations.power))
register("mod", Function(2, _numbers, operations.modulo))
register("least", Function((2, MOST_VALUES), _ordered, operations.least))
register("greatest", Function((2, MOST_VALUES), _ordered, operations.greatest))
register("coalesce", Function((2, MOST_VALUES), _alike, operations.coalesce))
register("seconds", Function(1, _takes("duration", "number"), operations.seconds))
register("hour", Function(2, _takes("time", "number"), operations.hour, constants={1: _zone_problem}))
register("minute", Function(2, _takes("time", "number"), operations.minute, constants={1: _zone_problem}))
register("weekday", Function(2, _takes("time", "number"), operations.weekday, constants={1: _zone_problem}))
register("date", Function(2, _takes("time", "string"), operations.date, constants={1: _zone_problem}))
_built_in("Distance", pairs.distance, 4, 1.0, _numbers)
_built_in("Similar", pairs.similar, 2, 1.0, _texts)
