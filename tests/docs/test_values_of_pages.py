"""What pages say of limits, times and lists of words is what the code has."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import cache

import pytest

from chainlake.airflow.names import MAINTENANCE_CRON, MAINTENANCE_TIMES
from chainlake.cep.language.front_matter import LIMITS
from chainlake.definitions.formats.globs import UNFINISHED
from chainlake.definitions.formats.mappings import FALSE, TRUE
from chainlake.definitions.source_keys import CONFLICTS, DELIVERIES, IDENTITIES
from chainlake.env.processes.waiting import FIRST_S
from chainlake.ingest.landing.discovery import _STORE_GRAIN_S
from chainlake.lake.upkeep.maintain import COMPACT_ABOVE, DATA_KEPT, OPS_KEPT
from chainlake.model_change.config.aggregates import AGGREGATES
from chainlake.model_change.days.daily import _ILL_CONDITIONED
from chainlake.model_change.learning.learners import LOSSES
from chainlake.model_change.zones.design import _TOGETHER
from chainlake.paths import PROJECT
from chainlake.report.reading import DRAWN

MINUTE, HOUR, *_ = MAINTENANCE_CRON.split()
CLOCK = f"{int(HOUR):02}:{int(MINUTE):02} UTC"
SPELT = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@cache
def page(name: str) -> str:
    """A page as one line."""
    return re.sub(r"\s+", " ", (PROJECT / "docs" / f"{name}.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("language", f"`limits: kleene_members` (default {LIMITS['kleene_members']})"),
        ("language", f"{LIMITS['set_members']:,} events (`limits: set_members`)"),
        ("language", f"`limits: compared_events` ({LIMITS['compared_events'] // 1_000_000} million"),
        ("maintenance", f"when a partition has more than {COMPACT_ABOVE} |"),
        ("maintenance", f"{DATA_KEPT // timedelta(days=1)} days; {OPS_KEPT // timedelta(days=1)} day for `ops.*`"),
        ("maintenance", f"{CLOCK}), works table by table"),
        (
            "maintenance",
            f"After {SPELT[int(FIRST_S)]} second{'s' * (FIRST_S > 1)} of waiting for a lock, a message says",
        ),
        ("model-change", f"a condition number above {_ILL_CONDITIONED:.0f} under `metric: coefficient`"),
        ("monitors", f"Above a condition number of {_ILL_CONDITIONED:,.0f} there is a remark"),
        ("monitors", f"for up to {_TOGETHER} levels"),
        ("object-store", f" {_STORE_GRAIN_S / 60:.0f} minutes"),
        ("report", f"and {SPELT[DRAWN]} matches"),
    ],
)
def test_a_page_states_the_value_of_the_code(name: str, said: str) -> None:
    assert said in page(name)


@pytest.mark.parametrize(
    ("name", "begin", "end", "words"),
    [
        ("sources", "Names that begin with a dot or end in", "are of uploads", UNFINISHED),
        ("sources", "A boolean is", "in any case", (*TRUE, *FALSE)),
        ("model-change", "combines several events of a key in a round:", "A round exists", tuple(AGGREGATES)),
    ],
)
def test_a_page_lists_the_words_of_the_code(name: str, begin: str, end: str, words: tuple[str, ...]) -> None:
    _, found, rest = page(name).partition(begin)
    assert found and set(re.findall(r"`([^`]+)`", rest.partition(end)[0])) == set(words)


def test_a_page_explains_every_word_of_a_key() -> None:
    sample = page("sources").partition("identity: ")[2].partition(" expect:")[0]
    assert [word for word in (*IDENTITIES, *DELIVERIES, *CONFLICTS) if not re.search(rf"\b{word}\b", sample)] == []
    assert [word for word in LOSSES if f"`{word}`" not in page("monitors")] == []


def test_the_words_for_maintenance_have_its_time() -> None:
    assert CLOCK in MAINTENANCE_TIMES
