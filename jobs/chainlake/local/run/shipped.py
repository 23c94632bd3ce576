"""The data that ships with the project: which days it covers, and which files land before the run of each day."""

from __future__ import annotations

import argparse
import filecmp
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import yaml

from chainlake.airflow.names import source_names
from chainlake.env.own_folders import NotWritable
from chainlake.local.errors import NotShipped, ShippedMissing
from chainlake.paths import PROJECT, Home
from chainlake.storage.resolve import storage_of

DATA = PROJECT / "data"


@dataclass(frozen=True)
class ShippedDay:
    """A UTC day of a source and the files that land before its run."""

    day: date
    files: tuple[Path, ...]


def shipped_days(home: Home, data: Path = DATA) -> dict[str, list[ShippedDay]]:
    """The days of every source with shipped data, in order; sources without a definition are left out.

    Raises:
        DefinitionError: ``days.yaml`` is missing, or names a file that is missing.
    """
    file = data / "days.yaml"
    if not file.exists():
        raise ShippedMissing.days(file)
    known = source_names(home)
    plan: dict[str, list[ShippedDay]] = {}
    for source, entry in yaml.safe_load(file.read_text())["sources"].items():
        days = [ShippedDay(row["day"], tuple(data / name for name in row["land"])) for row in entry["days"]]
        for missing in (path for day in days for path in day.files if not path.is_file()):
            raise ShippedMissing.file_of(file, missing)
        if source in known:
            plan[source] = sorted(days, key=lambda day: day.day)
    return plan


def add_selection(parser: argparse.ArgumentParser) -> None:
    """The options that :func:`selected_days` takes.

    Args:
        parser: of a program that runs shipped days.
    """
    parser.add_argument("--source", action="append", help="only this source; can be repeated")
    parser.add_argument("--days", type=int, help="only this many days of each source, the first ones")


def selected_days(home: Home, sources: Sequence[str] | None, days: int | None) -> dict[str, list[ShippedDay]]:
    """Of the shipped days those that are asked for.

    Args:
        home: the installation.
        sources: their names; None for all.
        days: how many of each source, the first ones; None for all.

    Raises:
        NotShipped: there is no such source, or no such number of days.
        DefinitionError: as for :func:`shipped_days`.
    """
    shipped = shipped_days(home)
    for name in sources or ():
        if name not in shipped:
            raise NotShipped.source(name, shipped)
    if days is not None and days < 1:
        raise NotShipped.days(days)
    return {name: all_days[:days] for name, all_days in shipped.items() if sources is None or name in sources}


def all_landed(home: Home, plan: Mapping[str, Sequence[ShippedDay]]) -> bool:
    """Whether every file of the plan is in its landing folder with the shipped content."""
    return all(
        _landed(file, home.landing(source) / file.name)
        for source, days in plan.items()
        for day in days
        for file in day.files
    )


def _landed(file: Path, target: Path) -> bool:
    return target.exists() and filecmp.cmp(file, target, shallow=False)


def land(home: Home, source: str, shipped: ShippedDay) -> int:
    """Copy the files of a day into the landing folder, each atomically, and return how many were not there yet.

    Raises:
        InfrastructureError: a file cannot be written to the folder or the store.
    """
    place = home.landed(source)
    if not storage_of(place).on_disk:
        return _stored(place, shipped.files)
    folder = home.landing(source)
    copied = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        waiting = home.root / "landing.part"
        waiting.mkdir(exist_ok=True)
        for file in shipped.files:
            target = folder / file.name
            if _landed(file, target):
                continue
            # copy2 keeps the original's time, so that ingest does not think the file is still being written.
            part = waiting / f"{source}-{file.name}"
            shutil.copy2(file, part)
            os.replace(part, target)
            copied += 1
    except OSError as error:
        raise NotWritable.landing(folder, error) from error
    return copied


def _stored(place: str, files: Sequence[Path]) -> int:
    """The same for a store, in which a file appears only as a whole."""
    store = storage_of(place)
    new = [file for file in files if store.read(f"{place}/{file.name}") != file.read_bytes()]
    for file in new:
        store.take(str(file), f"{place}/{file.name}")
    return len(new)
