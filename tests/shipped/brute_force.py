"""Each shipped pattern by plain loops, written from its meaning and not from the product's code.

Every function yields matches as dictionaries from the pattern's names to an event, or to a list of events for the name
that stands for several. Nothing here imports ``jobs``. ``python -m tests.shipped.brute_force`` prints the counts that
the tests pin.
"""

from __future__ import annotations

import bisect
import itertools
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from tests.shipped.shipped_data import US_PER_DAY, by_key, shipped

MINUTE = 60_000_000
Match = dict[str, dict | list[dict]]
#: The events of a source: one list per key, in time order.
Events = dict[str, list[dict]]


def _ts(row: dict) -> int:
    return row["ts"]


def _later(rows: list[dict], event: dict, minutes: float) -> list[dict]:
    """The rows strictly after an event, up to and including so many minutes later."""
    first = bisect.bisect_right(rows, event["ts"], key=_ts)
    return rows[first : bisect.bisect_right(rows, event["ts"] + minutes * MINUTE, key=_ts)]


def bank_follows_market(events: Events) -> Iterator[Match]:
    for market in events["SPY"]:
        if market["close"] <= market["open"] * (1 - 0.0005):
            for ticker in ("AIG", "BAC"):
                for bank in _later(events[ticker], market, 3):
                    if bank["close"] <= bank["open"] * (1 - 2 * 0.0005):
                        yield {"market": market, "bank": bank}


def shakeout(events: Events) -> Iterator[Match]:
    for rows in events.values():
        for down in rows:
            if down["close"] <= down["open"] * (1 - 0.001):
                for back in _later(rows, down, 10):
                    recovered = back["close"] > back["open"] and back["close"] >= down["open"]
                    if recovered and back["volume"] > down["volume"]:
                        yield {"down": down, "back": back}


def shakeout_pairs(events: Events) -> Iterator[Match]:
    used: set[str] = set()
    pairs = [(one["down"], one["back"]) for one in shakeout(events)]
    # By the recovery, of several by the fall: the earliest of both goes first. No two tickers share an event.
    for down, back in sorted(pairs, key=lambda pair: (pair[1]["ts"], pair[0]["ts"])):
        if down["id"] not in used and back["id"] not in used:
            used |= {down["id"], back["id"]}
            yield {"down": down, "back": back}


def three_pushes(events: Events) -> Iterator[Match]:
    for rows in events.values():
        up = [row for row in rows if row["close"] >= row["open"] * (1 + 0.0005)]
        for a in up:
            for b, c in itertools.permutations(_later(up, a, 5), 2):
                rising = a["close"] < b["close"] < c["close"] and a["volume"] < b["volume"] < c["volume"]
                if b["ts"] < c["ts"] and rising:
                    yield {"a": a, "b": b, "c": c}


def fall_not_recovered(events: Events) -> Iterator[Match]:
    for rows in events.values():
        for down in rows:
            if not down["close"] <= down["open"] * (1 - 0.001):
                continue
            after = _later(rows, down, 10)
            for later in after:
                if later["ts"] - down["ts"] >= 8 * MINUTE and later["close"] < down["close"]:
                    between = [row for row in after if row["ts"] < later["ts"]]
                    if not any(row["high"] >= down["open"] for row in between):
                        yield {"down": down, "later": later}


def breakdown(events: Events) -> Iterator[Match]:
    for rows in events.values():
        for before in rows:
            if before["speed"] >= 58 and before["flow"] >= 350:
                for jam in _later(rows, before, 15):
                    if jam["speed"] <= 42:
                        yield {"before": before, "jam": jam}


def queue_spillback(events: Events) -> Iterator[Match]:
    for rows in events.values():
        downstream = [other for other in events.values() if 0 < other[0]["position"] - rows[0]["position"] <= 1.0]
        for before in rows:
            if before["speed"] > 50:
                for jam in _later(rows, before, 30):
                    if jam["speed"] < 35:
                        for other in downstream:
                            for ahead in _later(other, before, 30):
                                if ahead["ts"] < jam["ts"] and ahead["speed"] < 35:
                                    yield {"before": before, "ahead": ahead, "jam": jam}


def stuck(events: Events) -> Iterator[Match]:
    for rows in events.values():
        for early in rows:
            if early["speed"] < 20:
                after = _later(rows, early, 30)
                for late in after:
                    if late["speed"] < 20 and late["ts"] == early["ts"] + 30 * MINUTE:
                        if all(row["speed"] < 30 for row in after if row["ts"] < late["ts"]):
                            yield {"early": early, "late": late}


def jam_holds(events: Events) -> Iterator[Match]:
    for rows in events.values():
        for before in rows:
            if before["speed"] >= 58:
                hour = _later(rows, before, 60)
                for jam in _later(rows, before, 15):
                    if jam["speed"] <= 42 and all(row["speed"] < 55 for row in hour if row["ts"] > jam["ts"]):
                        yield {"before": before, "jam": jam}


def jam_cleared(events: Events) -> Iterator[Match]:
    for rows in events.values():
        slow: list[dict] = []
        for row in rows:
            slow = [one for one in slow if row["ts"] - one["ts"] <= 360 * MINUTE]
            if row["speed"] <= 42:
                slow.append(row)
            elif row["speed"] >= 58 and slow:
                yield {"jam": slow, "cleared": [row]}
                slow = []


def queue_tail(events: Events) -> Iterator[Match]:
    for rows, other in itertools.permutations(events.values(), 2):
        if 0 < other[0]["position"] - rows[0]["position"] <= 1.0:
            slow = {row["ts"]: row for row in other if row["speed"] <= 35 or row["occupancy"] >= 0.25}
            for behind in rows:
                for shift in (-5, 0, 5):
                    ahead = slow.get(behind["ts"] + shift * MINUTE)
                    if ahead is not None and behind["speed"] >= 55:
                        yield {"behind": behind, "ahead": ahead}


def gas_onset(events: Events) -> Iterator[Match]:
    for channel in ("R2", "R3", "R4", "R7", "R8"):
        for clean in events[channel]:
            for gas in _later(events[channel], clean, 3):
                if gas["value"] <= clean["value"] * 0.7:
                    yield {"clean": clean, "gas": gas}


def gas_seen(events: Events) -> Iterator[Match]:
    for low, pairs in itertools.groupby(
        sorted(gas_onset(events), key=lambda pair: (pair["gas"]["id"], pair["clean"]["ts"])), lambda pair: pair["gas"]
    ):
        yield {"clean": [pair["clean"] for pair in pairs][-1], "gas": low}


def gas_stays(events: Events) -> Iterator[Match]:
    rows = events["R3"]
    for clean in rows:
        after = _later(rows, clean, 5)
        for lasting in after:
            if lasting["value"] <= clean["value"] * 0.8:
                lower = [row for row in after if row["ts"] < lasting["ts"] and row["value"] < clean["value"]]
                for size in range(2, len(lower) + 1):
                    for gas in itertools.combinations(lower, size):
                        total = 0.0
                        for row in gas:
                            total += row["value"]
                        if total / size <= clean["value"] * 0.8:
                            yield {"clean": clean, "gas": list(gas), "lasting": lasting}


def sensors_agree(events: Events) -> Iterator[Match]:

    def falls(channel: str) -> list[tuple[dict, dict]]:
        rows = events[channel]
        return [(x, y) for x in rows for y in _later(rows, x, 3) if y["value"] <= x["value"] * 0.8]

    for (a, a_low), (b, b_low) in itertools.product(falls("R3"), falls("R8")):
        if max(a_low["ts"], b_low["ts"]) - min(a["ts"], b["ts"]) <= 3 * MINUTE:
            yield {"a": a, "a_low": a_low, "b": b, "b_low": b_low}


def air_changes(events: Events) -> Iterator[Match]:
    for dry in events["humidity"]:
        for humid in _later(events["humidity"], dry, 3):
            if humid["value"] - dry["value"] >= 1:
                yield {"dry": dry, "humid": humid}
    for clean in events["R7"]:
        for gas in _later(events["R7"], clean, 3):
            if gas["value"] <= clean["value"] * 0.6:
                yield {"clean": clean, "gas": gas}


def echo(events: Events) -> Iterator[Match]:
    last: dict[str, list[float]] = {}
    for rows in events.values():
        for row, ten in zip(rows[9:], (rows[i : i + 10] for i in range(len(rows))), strict=False):
            if all(after["ts"] - before["ts"] <= 2 * MINUTE for before, after in itertools.pairwise(ten)):
                last[row["id"]] = [one["close"] for one in ten]
    for market in events["SPY"]:
        for ticker in events.keys() - {"SPY"}:
            for share in _later(events[ticker], market, 3):
                if share["close"] <= share["open"] * (1 - 0.0005) and market["id"] in last and share["id"] in last:
                    if _correlation(last[market["id"]], last[share["id"]]) > 0.95:
                        yield {"market": market, "share": share}


def _correlation(x: list[float], y: list[float]) -> float:
    if len(set(x)) == 1 or len(set(y)) == 1:
        return 0.0
    return statistics.correlation(x, y)


#: Every shipped pattern: its source and its loops.
PATTERNS: dict[str, tuple[str, Callable[[Events], Iterator[Match]]]] = {
    "bank_follows_market": ("stock", bank_follows_market),
    "shakeout": ("stock", shakeout),
    "shakeout_pairs": ("stock", shakeout_pairs),
    "three_pushes": ("stock", three_pushes),
    "fall_not_recovered": ("stock", fall_not_recovered),
    "echo": ("stock", echo),
    "breakdown": ("traffic", breakdown),
    "queue_spillback": ("traffic", queue_spillback),
    "stuck": ("traffic", stuck),
    "jam_holds": ("traffic", jam_holds),
    "jam_cleared": ("traffic", jam_cleared),
    "queue_tail": ("traffic", queue_tail),
    "gas_onset": ("sensor", gas_onset),
    "gas_seen": ("sensor", gas_seen),
    "gas_stays": ("sensor", gas_stays),
    "sensors_agree": ("sensor", sensors_agree),
    "air_changes": ("sensor", air_changes),
}
#: Patterns that end with a negation decide so many minutes after their first event, all others at their last.
WAITS = {"jam_holds": 60}


def as_ids(match: Match) -> tuple[tuple[str, str | tuple[str, ...]], ...]:
    """A match as a hashable value: sorted (name, id) pairs, with a sorted tuple of ids for a name bound to several."""
    pairs: list[tuple[str, str | tuple[str, ...]]] = []
    for name, bound in match.items():
        pairs.append((name, tuple(sorted(row["id"] for row in bound)) if isinstance(bound, list) else bound["id"]))
    return tuple(sorted(pairs))


def decision_day(match: Match, waits: int | None = None) -> str:
    """The UTC day on which a match decides: that of its last event, or ``waits`` minutes after its first."""
    times = [row["ts"] for bound in match.values() for row in (bound if isinstance(bound, list) else [bound])]
    decision = max(times) if waits is None else min(times) + waits * MINUTE
    return datetime.fromtimestamp(decision // US_PER_DAY * 86_400, UTC).date().isoformat()


def counts(name: str) -> dict[str, int]:
    """Matches of a pattern in the shipped data per UTC day."""
    source, loops = PATTERNS[name]
    days = (decision_day(match, WAITS.get(name)) for match in loops(by_key(shipped(source), source)))
    return dict(sorted(Counter(days).items()))


if __name__ == "__main__":
    for pattern in PATTERNS:
        print(f'    "{pattern}": {counts(pattern)},')
