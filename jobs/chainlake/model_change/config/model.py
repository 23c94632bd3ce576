"""A model file (``dags/config/models/<name>.yaml``) as a checked value (docs/model-change.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chainlake.model_change.config.errors import WrongColumns, WrongFit
from chainlake.model_change.config.features import Feature, parse_features, parse_series
from chainlake.model_change.config.nodes import Node, fewest, parse_groups
from chainlake.model_change.config.reading import Settings
from chainlake.model_change.config.series import ALERTING_KEYS, ON_GAP, SeriesConfig, shared_values

CONSTRAINTS = ("paper", "residual", "onesided", "energy", "matfrac")
DETECTORS = ("local", "exact", "both")
METRICS = ("coefficient", "prediction")
_KEYS = (
    "nodes groups response features intercept window eps constraint detector metric ridge penalise_intercept gls "
    "session_gap on_gap per_baseline per_Tmax count_from"
).split()


@dataclass(frozen=True)
class ModelConfig(SeriesConfig):
    """One checked model: the fields of `SeriesConfig`, and the following.

    ``window`` is W, or the warm-up if ``infinite``. ``ridge`` is the matrix P (m x m, row-major) of
    docs/monitors.md#ridge, or None. ``phi`` is None (OLS), a number or ``"fit"``. ``eps`` is absolute, or a share of
    the norm of the first model if ``eps_is_share``. ``per_longest`` is the longest period that the periodic baseline
    tries (None: half of the rounds). Metrics count rounds from number ``count_from`` on.
    """

    intercept: int | None
    infinite: bool
    eps: float
    eps_is_share: bool
    constraint: str
    detector: str
    metric: str
    ridge: tuple[tuple[float, ...], ...] | None
    phi: float | str | None
    per_baseline: bool
    per_longest: int | None
    count_from: int

    @property
    def bound(self) -> float | None:
        """eps; None if it is a share of the first model, since then only the state knows it."""
        return None if self.eps_is_share else self.eps

    @property
    def counted_from(self) -> int:
        """Number of the first round that metrics count; the group's first round is number 0."""
        return self.count_from

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed but rarely intended, one sentence each."""
        found = []
        m = len(self.feature_names)
        if self.infinite and self.constraint in ("paper", "residual"):
            found.append(
                f"{self.constraint} with an infinite window synchronises at each doubling of the data at least; "
                "onesided, energy and matfrac do not"
            )
        if not self.infinite and self.detector != "exact" and self.window < 72 * m:
            found.append(
                f"the window of {self.window} rounds is shorter than 72 rounds per coefficient ({72 * m}): with "
                "independent features of mean zero the local test would fail by noise alone"
            )
        return tuple(found)


def checked_model(name: str, top: Settings) -> ModelConfig:
    """The model that a file's mapping describes.

    Raises:
        DefinitionError: naming file, line, key and the allowed values.
    """
    top.choice("kind", ("model",), "model")
    top.only((*ALERTING_KEYS, *_KEYS))
    groups = parse_groups(top)
    features = parse_features(top)
    response = parse_series(top, top.data.get("response"), "response")
    _members(top, groups, features, response)
    m = sum(len(feature.names) for feature in features)
    intercept = _intercept(features)
    infinite, window = _window(top)
    ridge = _ridge(top, m, intercept)
    shared = shared_values(top, name, groups, window, None)
    smallest = min(fewest(nodes) for nodes in groups.values())
    if smallest * window < m and ridge is None:
        raise top.placed(WrongFit.undetermined(smallest, window, m), "window")
    eps, share = _eps(top)
    session_gap = top.duration("session_gap", None)
    if session_gap is None and "on_gap" in top.data:
        raise top.placed(WrongFit.no_gap(), "on_gap")
    per_baseline = top.flag("per_baseline", False)
    if "per_Tmax" in top.data and not per_baseline:
        raise top.placed(WrongFit.no_baseline(), "per_Tmax")
    return ModelConfig(
        **shared,
        response=response,
        features=features,
        intercept=intercept,
        infinite=infinite,
        window=window,
        eps=eps,
        eps_is_share=share,
        detector=top.choice("detector", DETECTORS, "both"),
        constraint=top.choice("constraint", CONSTRAINTS, "onesided" if infinite else "residual"),
        metric=top.choice("metric", METRICS, "coefficient"),
        ridge=ridge,
        phi=_phi(top),
        session_gap_us=session_gap,
        on_gap=top.choice("on_gap", ON_GAP, "continue"),
        per_baseline=per_baseline,
        per_longest=top.whole("per_Tmax", None),
        count_from=top.whole("count_from", 0, least=0),
    )


def _intercept(features: tuple[Feature, ...]) -> int | None:
    at = 0
    for feature in features:
        if feature.of is None:
            return at
        at += len(feature.names)
    return None


def _members(
    top: Settings, groups: dict[str, tuple[Node, ...]], features: tuple[Feature, ...], response: Feature
) -> None:
    """Check that every node has as many keys as features name by position."""
    fewest_keys = min(len(node.keys) for nodes in groups.values() for node in nodes)
    for feature, path in ((response, ("response",)), *((f, ("features",)) for f in features)):
        if feature.member is not None and feature.member > fewest_keys:
            raise top.placed(WrongColumns.no_member(feature.base, feature.member, fewest_keys), *path)


def _window(top: Settings) -> tuple[bool, int]:
    section = top.mapping("window", "{sliding: rounds} or {infinite: warm-up rounds}")
    section.only(("sliding", "infinite"))
    if len(section.data) != 1:
        raise top.placed(WrongFit.one_window(), "window")
    kind = next(iter(section.data))
    return kind == "infinite", section.whole(kind)


def _eps(top: Settings) -> tuple[float, bool]:
    if isinstance(top.data.get("eps"), dict):
        section = top.mapping("eps", "a number, or {share: number}")
        section.only(("share",))
        return section.number("share", above=0), True
    return top.number("eps", above=0), False


def _phi(top: Settings) -> float | str | None:
    if top.data.get("gls") is None:
        return None
    section = top.mapping("gls", "{phi: number} or {phi: fit}")
    section.only(("phi",))
    if section.data.get("phi") == "fit":
        return "fit"
    allowed = "Allowed: numbers from 0 up to, not including, 1; or fit."
    phi = section.data.get("phi")
    if isinstance(phi, bool) or not isinstance(phi, (int, float)) or not 0 <= phi < 1:
        raise section.placed(WrongFit.phi(phi, allowed), "phi")
    return float(phi)


def _ridge(top: Settings, m: int, intercept: int | None) -> tuple[tuple[float, ...], ...] | None:
    value = top.data.get("ridge")
    penalise = top.flag("penalise_intercept", False)
    if value is None or value == 0:
        return None
    if isinstance(value, list):
        numbers = all(
            isinstance(row, list) and len(row) == m and all(type(cell) in (int, float) for cell in row) for row in value
        )
        p = np.array(value, dtype=float) if numbers else None
        if p is None or p.shape != (m, m) or not np.array_equal(p, p.T) or np.linalg.eigvalsh(p)[0] < -1e-12 * p.max():
            raise top.placed(WrongFit.ridge(m), "ridge")
        return tuple(tuple(float(cell) for cell in row) for row in value)
    weight = top.number("ridge", least=0)
    free = None if penalise else intercept
    return tuple(tuple(weight if i == j and i != free else 0.0 for j in range(m)) for i in range(m))
