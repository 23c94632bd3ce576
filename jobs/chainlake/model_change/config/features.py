"""The columns of a model: how YAML describes them, and their values in every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, assert_never

import numpy as np

from chainlake.model_change.config.errors import WrongColumns, WrongValue
from chainlake.model_change.config.expressions import column_of, expression_of, value_text
from chainlake.model_change.config.reading import Settings

_FORMS = (
    "a column name, constant, {of: COLUMN, key: OTHER KEY or member: N, transform: log|diff|lag N}, "
    "{polynomial: {of: COLUMN, degree: N, scale: [-1, 1]}}; instead of 'of' also expression: (high - low) / close"
)


#: A transform of a column; the number stored with it says how many rounds it reaches back.
Step = Literal["log", "diff", "lag"]

#: Larger values count as not reported, and a round is not used if what a model makes of its values is larger: squares
#: of such values, and products of these, would leave the range of doubles.
LARGEST = 1e70


@dataclass(frozen=True)
class Feature:
    """One entry of ``features``, or the response.

    Args:
        of: column of the events, or of an expression (`expressions.column_of`); None for the constant.
        key: take the value that this other key has in the same round, instead of the node's own.
        member: take the value of the node's N-th key (from 1); without it, a node of several keys has their mean (their
            sum, smallest or largest value if the events of a round are aggregated that way).
        steps: transforms in order: ``("log", 0)``, ``("diff", 1)``, ``("lag", n)``.
        degree: number of powers, 1 for a plain column.
        low, high: raw values that are mapped to the ends of ``scale``; None: the smallest and largest of the first
            usable round.
        scale: the interval that a polynomial's values are mapped to.
        name: what an expression is called; None: it is called by its own text.
    """

    #: Of the hash of a model (`digests.hashed_fields`).
    ALWAYS_HASHED: ClassVar[tuple[str, ...]] = ("key", "steps", "degree", "low", "high", "scale", "member")

    of: str | None
    key: str | None = None
    steps: tuple[tuple[Step, int], ...] = ()
    degree: int = 1
    low: float | None = None
    high: float | None = None
    scale: tuple[float, float] | None = None
    member: int | None = None
    name: str | None = None

    @property
    def base(self) -> str:
        """Readable name without the power."""
        if self.of is None:
            return "constant"
        expression = expression_of(self.of)
        text = self.name or expression or self.of
        if text == expression and (self.key or self.member or self.degree > 1):
            text = f"({text})"
        text = f"{self.key}.{text}" if self.key is not None else text
        text = f"{text}[{self.member}]" if self.member is not None else text
        for step, n in self.steps:
            text = f"{step}({text}, {n})" if step == "lag" else f"{step}({text})"
        return text

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the model's columns that come from this entry."""
        return tuple(self.base if power == 1 else f"{self.base}^{power}" for power in range(1, self.degree + 1))

    @property
    def reach(self) -> int:
        """How many earlier rounds the value needs."""
        return sum(n for _, n in self.steps)


def parse_features(top: Settings) -> tuple[Feature, ...]:
    """``features`` and ``intercept`` as entries in model order; the intercept is column 0.

    Raises:
        DefinitionError: for unknown forms and for a column given twice.
    """
    listed = top.data.get("features", [])
    if not isinstance(listed, list):
        raise top.placed(WrongColumns.no_list("features", _FORMS), "features")
    found = tuple(_feature(top, value, "features", i) for i, value in enumerate(listed))
    if top.flag("intercept", True):
        for i, feature in enumerate(found):
            if feature.of is None:
                raise top.placed(WrongColumns.two_constants(), "features", i)
        found = (Feature(of=None), *found)
    names = [name for feature in found for name in feature.names]
    for name in names:
        if names.count(name) > 1:
            raise top.placed(WrongColumns.feature_twice(name), "features")
    if not names:
        raise top.placed(WrongColumns.none(_FORMS), "features")
    return found


def parse_columns(top: Settings, key: str) -> tuple[Feature, ...]:
    """A list of columns, each with its transforms, such as the coordinates of a vector.

    Raises:
        DefinitionError: for an empty list, unknown forms and a column given twice.
    """
    listed = top.data.get(key)
    if not isinstance(listed, list) or not listed:
        raise top.placed(WrongColumns.no_columns(key, _FORMS), key)
    found = tuple(_feature(top, value, key, i) for i, value in enumerate(listed))
    names = [name for feature in found for name in feature.names]
    for i, feature in enumerate(found):
        if feature.of is None:
            raise top.placed(WrongColumns.constant(), key, i)
        if any(names.count(name) > 1 for name in feature.names):
            raise top.placed(WrongColumns.column_twice(feature.base), key, i)
    return found


def parse_series(top: Settings, value: Any, *path: str | int) -> Feature:
    """One column, of the node itself or of another key, with its transforms; ``path`` is its place in the file."""
    if value is None:
        raise top.placed(WrongValue.missing(path[-1], "a column name or {of: COLUMN, ...}"), *path)
    if isinstance(value, str) and value != "constant":
        return Feature(of=value)
    if not isinstance(value, dict):
        raise top.placed(WrongColumns.no_column(value, _FORMS), *path)
    section = top.at(value, *path)
    section.only(("of", "name", "expression", "key", "member", "transform"))
    other = section.data.get("key")
    if other is not None and "member" in section.data:
        raise section.placed(WrongColumns.two_sensors(), "member")
    return Feature(
        of=_column(section),
        name=_name(section),
        key=None if other is None else section.key_value("key"),
        steps=_steps(section),
        member=section.whole("member", None),
    )


def _feature(top: Settings, value: Any, *path: str | int) -> Feature:
    if value == "constant":
        return Feature(of=None)
    if not (isinstance(value, dict) and "polynomial" in value):
        return parse_series(top, value, *path)
    outer = top.at(value, *path)
    outer.only(("polynomial",))
    section = outer.mapping("polynomial", "{of: COLUMN, degree: N, scale: [-1, 1], range: [low, high]}")
    section.only(("of", "name", "expression", "degree", "scale", "range"))
    low, high = _pair(section, "range", (None, None))
    return Feature(
        of=_column(section),
        name=_name(section),
        degree=section.whole("degree"),
        low=low,
        high=high,
        scale=_pair(section, "scale", (-1.0, 1.0)),
    )


def _column(section: Settings) -> str:
    """The column that an entry names, or the column of its expression."""
    if "expression" not in section.data:
        return str(section.text("of"))
    if "of" in section.data:
        raise section.placed(WrongColumns.two_values(), "of")
    return column_of(value_text(section, "expression"))


def _name(section: Settings) -> str | None:
    if "name" in section.data and "expression" not in section.data:
        raise section.placed(WrongColumns.named_column(), "name")
    name: str | None = section.text("name", None)
    return name


def _pair(section: Settings, key: str, default: Any) -> Any:
    value = section.data.get(key)
    if value is None:
        return default
    numbers = isinstance(value, list) and len(value) == 2 and all(type(v) in (int, float) for v in value)
    if not numbers or value[0] >= value[1]:
        raise section.placed(WrongColumns.no_pair(value), key)
    return float(value[0]), float(value[1])


def _steps(section: Settings) -> tuple[tuple[Step, int], ...]:
    value = section.data.get("transform", [])
    found: list[tuple[Step, int]] = []
    for step in value if isinstance(value, list) else [value]:
        words = str(step).split()
        if words == ["log"]:
            found.append(("log", 0))
        elif words == ["diff"]:
            found.append(("diff", 1))
        elif len(words) == 2 and words[0] == "lag" and words[1].isdecimal() and int(words[1]) > 0:
            found.append(("lag", int(words[1])))
        else:
            raise section.placed(WrongColumns.no_transform(step), "transform")
    return tuple(found)


def values_of(feature: Feature, own: np.ndarray, span: tuple[float, float] | None) -> np.ndarray:
    """The columns of one entry for consecutive rounds.

    Args:
        feature: the entry.
        own: (h + n, k) values of every node before transforms, with ``h`` rounds of history in front; NaN where no
            value is known.
        span: raw values mapped to the ends of ``feature.scale``; needed for polynomials only.

    Returns:
        (h + n, k, degree); NaN where the history does not reach.
    """
    for step, n in feature.steps:
        match step:
            case "log":
                with np.errstate(invalid="ignore", divide="ignore"):
                    own = np.where(own > 0, np.log(np.where(own > 0, own, 1.0)), np.nan)
            case "diff":
                own = own - _earlier(own, n)
            case "lag":
                own = _earlier(own, n)
            case _:
                assert_never(step)
    if feature.scale is None or span is None:
        return own[:, :, None]
    low, high = span
    a, b = feature.scale
    scaled = a + (own - low) * ((b - a) / (high - low) if high > low else 0.0)
    powers = [scaled]
    with np.errstate(over="ignore"):  # callers check the size of the values
        for _ in range(1, feature.degree):
            powers.append(powers[-1] * scaled)
    return np.stack(powers, axis=2)


def _earlier(own: np.ndarray, n: int) -> np.ndarray:
    """The values of n rounds earlier; NaN in the first n rounds."""
    shifted = np.full_like(own, np.nan)
    shifted[n:] = own[: max(len(own) - n, 0)]
    return shifted
