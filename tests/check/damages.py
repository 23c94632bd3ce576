"""Damages of every kind that can befall a lake, each done to a copy of ``tests.check.lakes``."""

from __future__ import annotations

from tests.check import damaged_files, damaged_rows
from tests.check.damage import REGISTERED, Damage

#: Those of rows first: ``test_damages`` puts several into a lake, in this order.
ALL = [one for of in (damaged_rows, damaged_files) for one in REGISTERED if one.act.__module__ == of.__name__]

__all__ = ["ALL", "Damage"]
