"""What a damage of a lake is, and what those of every kind are done with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from chainlake.paths import Home


@dataclass(frozen=True)
class Damage:
    """One damage.

    Args:
        name: short.
        table: that the check must name.
        act: does it.
        says: words that a finding of the table must hold.
        harmless, rare: nothing of it is damage; done by ``make damage-proof`` alone.
    """

    name: str
    table: str
    act: Callable[[Home], None]
    says: str = ""
    harmless: bool = False
    rare: bool = False


REGISTERED: list[Damage] = []


def damage(
    table: str, says: str = "", *, harmless: bool = False, rare: bool = False
) -> Callable[[Callable[[Home], None]], None]:
    """Register a function as a damage."""

    def register(act: Callable[[Home], None]) -> None:
        REGISTERED.append(Damage(act.__name__, table, act, says, harmless, rare))

    return register


def opened(home: Home, table: str) -> DeltaTable:
    return DeltaTable(folder(home, table).as_posix())


def folder(home: Home, table: str) -> Path:
    schema, _, name = table.partition(".")
    return Path(home.table(schema, name))


def largest(home: Home, table: str) -> Path:
    """The largest data file of a table's version."""
    delta = opened(home, table)
    paths = [folder(home, table) / path for path in delta.get_add_actions(flatten=True).column("path").to_pylist()]
    return max(paths, key=lambda path: (path.stat().st_size, path.name))


def log_entry(home: Home, table: str, version: int) -> Path:
    return folder(home, table) / "_delta_log" / f"{version:020}.json"


def flip(path: Path, at: int, count: int = 4) -> None:
    content = bytearray(path.read_bytes())
    for place in range(at, at + count):
        content[place] ^= 0xFF
    path.write_bytes(content)
