"""A file of ``kind: safe_zones`` in ``dags/config/models/`` as a checked value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from chainlake.model_change.config.features import LARGEST, parse_columns
from chainlake.model_change.config.nodes import parse_groups, undated
from chainlake.model_change.config.reading import Settings
from chainlake.model_change.config.series import ALERTING_KEYS, SeriesConfig, shared_values
from chainlake.model_change.zones.design import METHODS
from chainlake.model_change.zones.errors import WrongRegion
from chainlake.model_change.zones.region import Region, box_region, has_inside, polygon_region

_KEYS = ("nodes", "groups", "values", "region", "design")
_FORMS = "box: [[low, high], ...], polygon: [[x, y], ...] or half_planes: [{normal: [...], below: NUMBER}, ...]"
#: For how many rounds a silent node's last values are used, where ``max_carry`` is not given.
_CARRY = 60


@dataclass(frozen=True)
class ZonesConfig(SeriesConfig):
    """A monitor of the mean of the nodes' vectors, whose coordinates are the features.

    Args:
        region: where the mean should be.
        design_rounds: rounds of history that zones are designed from; 0: every node's zone is the region.
        design_every: days after which they are designed again.
        design_method: how they are designed; see `design.designed`.
    """

    COLUMN_KEYS: ClassVar[tuple[str, str]] = ("values", "values")

    region: Region
    design_rounds: int
    design_every: int
    design_method: str

    @property
    def bound(self) -> float | None:
        """How far the mean may be beyond a facet in a round that is not ``outside``."""
        return 0.0


def checked_zones(name: str, top: Settings) -> ZonesConfig:
    """The monitor that a file describes.

    Raises:
        DefinitionError: naming file, line, key and the allowed values.
    """
    top.only((*ALERTING_KEYS, *_KEYS))
    groups = undated(top, parse_groups(top), "nodes whose mean is watched")
    values = parse_columns(top, "values")
    names = [name for value in values for name in value.names]
    rounds, every, method = _design(top)
    return ZonesConfig(
        **shared_values(top, name, groups, _CARRY, None),
        response=values[0],
        features=values,
        window=1,
        session_gap_us=None,
        on_gap="continue",
        region=_region(top, names),
        design_rounds=rounds,
        design_every=every,
        design_method=method,
    )


def _design(top: Settings) -> tuple[int, int, str]:
    if top.data.get("design") is None:
        return 0, 7, "auto"
    section = top.mapping("design", "{rounds: N, every: DAYS, method: auto}")
    section.only(("rounds", "every", "method"))
    return section.whole("rounds", least=10), section.whole("every", 7), section.choice("method", METHODS, "auto")


def _region(top: Settings, names: list[str]) -> Region:
    section = top.mapping("region", _FORMS)
    section.only(("box", "polygon", "half_planes"))
    if len(section.data) != 1:
        raise top.placed(WrongRegion.one_form(_FORMS), "region")
    form = next(iter(section.data))
    listed = section.data[form]
    if not isinstance(listed, list) or not listed:
        raise section.placed(WrongRegion.no_list(form, _FORMS), form)
    read = {"box": _box, "polygon": _polygon, "half_planes": _half_planes}[form]
    if any(abs(number) > LARGEST for number in _numbers(listed)):
        raise section.placed(WrongRegion.too_large(LARGEST), form)
    # Next to a smaller one, the room that a facet leaves is beyond the doubles.
    if any(0 < abs(number) < 1 / LARGEST for number in _numbers(listed)):
        raise section.placed(WrongRegion.too_small(1 / LARGEST), form)
    region = read(section, listed, names)
    # Boxes and polygons have an inside by their form.
    if form == "half_planes" and not has_inside(region):
        raise section.placed(WrongRegion.empty(), form)
    return region


def _numbers(value: Any) -> Iterator[float]:
    """All numbers in lists and mappings of any depth."""
    if isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)
    elif _is_number(value):
        yield value


def _box(section: Settings, listed: list[Any], names: list[str]) -> Region:
    if len(listed) != len(names):
        raise section.placed(WrongRegion.box(len(listed), names), "box")
    for i, pair in enumerate(listed):
        if not isinstance(pair, list) or len(pair) != 2 or not all(one is None or _is_number(one) for one in pair):
            raise section.placed(WrongRegion.no_interval(pair), "box", i)
        if None not in pair and pair[0] >= pair[1]:
            raise section.placed(WrongRegion.falling(*pair), "box", i)
    if all(one is None for pair in listed for one in pair):
        raise section.placed(WrongRegion.no_bound(), "box")
    bounds = [[None if one is None else float(one) for one in pair] for pair in listed]
    return box_region([(low, high) for low, high in bounds], names)


def _polygon(section: Settings, listed: list[Any], names: list[str]) -> Region:
    if len(names) != 2:
        raise section.placed(WrongRegion.polygon(names), "polygon")
    for i, corner in enumerate(listed):
        if not isinstance(corner, list) or len(corner) != 2 or not all(map(_is_number, corner)):
            raise section.placed(WrongRegion.no_corner(corner), "polygon", i)
    region = polygon_region([(float(x), float(y)) for x, y in listed])
    if region is None:
        raise section.placed(WrongRegion.no_polygon(), "polygon")
    return region


def _half_planes(section: Settings, listed: list[Any], names: list[str]) -> Region:
    normals, below, labels = [], [], []
    for i, item in enumerate(listed):
        if not isinstance(item, dict):
            raise section.placed(WrongRegion.no_half_plane(item), "half_planes", i)
        inner = section.at(item, "half_planes", i)
        inner.only(("normal", "below", "name"))
        normal = inner.data.get("normal")
        fits = isinstance(normal, list) and len(normal) == len(names) and all(map(_is_number, normal)) and any(normal)
        if not isinstance(normal, list) or not fits:
            raise inner.placed(WrongRegion.no_normal(normal, names), "normal")
        normals.append(tuple(map(float, normal)))
        below.append(inner.number("below"))
        labels.append(inner.text("name", f"facet {i + 1}"))
    return Region(tuple(labels), tuple(normals), tuple(below))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
