"""The functions that conditions may call: ``Corr`` and ``Abs``, and whatever else is registered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainlake.cep.events.values import Value


@dataclass(frozen=True)
class Function:
    """A function of the language.

    Args:
        arity: how many values it takes.
        result: kinds of the arguments (``number``, ``duration``, ``list``, …, ``any`` if unknown) to the kind of the
            result, or None if these kinds are not accepted.
        apply: the vectorised implementation; gets and gives ``chainlake.cep.events.values.Value``.
        scalar: the same for one value that is not null, if it is a function of one value; None lets the event-order
            run call ``apply`` on columns of one row, which is slower.
    """

    arity: int
    result: Callable[[tuple[str, ...]], str | None]
    apply: Callable[[tuple[Value, ...]], Value]
    scalar: Callable[[Any], Any] | None = None


_REGISTRY: dict[str, Function] = {}


def register(name: str, function: Function) -> None:
    """Make ``function`` callable in patterns as ``name`` (in any case)."""
    _REGISTRY[name.lower()] = function


def lookup(name: str) -> Function | None:
    """The function called ``name``, or None."""
    return _REGISTRY.get(name.lower())


def known() -> list[str]:
    """The names of all functions."""
    return sorted(_REGISTRY)


def _abs_kind(kinds: tuple[str, ...]) -> str | None:
    return kinds[0] if kinds[0] in ("number", "duration", "any", "null") else None


def _corr_kind(kinds: tuple[str, ...]) -> str | None:
    return "number" if all(kind in ("list", "any", "null") for kind in kinds) else None


def _abs(args: tuple[Value, ...]) -> Value:
    from chainlake.cep.events.values import absolute

    return absolute(args[0])


def _corr(args: tuple[Value, ...]) -> Value:
    from chainlake.cep.events.values import correlation

    return correlation(*args)


register("abs", Function(1, _abs_kind, _abs, abs))
register("corr", Function(2, _corr_kind, _corr))
