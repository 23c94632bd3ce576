"""What a monitor step has done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chainlake.run.results import Monitored

if TYPE_CHECKING:
    from chainlake.lake.commits.publish import Published

#: The errors that stopped models, by the names of their definitions.
Failures = dict[str, BaseException]


@dataclass(frozen=True)
class MonitorResult:
    """What a step, or a part of it, has done.

    Args:
        models: number of models that were run to their last day.
        days: number of days published, over all models.
        added, changed, withdrawn: number of rows, in the tables in which models publish their findings.
        failed: definitions, each with the error that stopped it.
    """

    models: int = 0
    days: int = 0
    added: int = 0
    changed: int = 0
    withdrawn: int = 0
    failed: tuple[tuple[str, BaseException], ...] = ()

    @classmethod
    def of(cls, published: Mapping[str, Published], failed: Failures) -> MonitorResult:
        """The result of what was published, by definition, and of the errors that stopped others."""
        found = published.values()
        return cls(
            days=sum(len(one.days_done) for one in found),
            added=sum(one.added for one in found),
            changed=sum(one.changed for one in found),
            withdrawn=sum(one.withdrawn for one in found),
            failed=tuple(failed.items()),
        )

    def __add__(self, other: MonitorResult) -> MonitorResult:
        return MonitorResult(
            self.models + other.models,
            self.days + other.days,
            self.added + other.added,
            self.changed + other.changed,
            self.withdrawn + other.withdrawn,
            (*self.failed, *other.failed),
        )

    @property
    def counts(self) -> Monitored:
        """All but ``failed``, as the step's caller gets them."""
        return {
            "models": self.models,
            "days": self.days,
            "added": self.added,
            "changed": self.changed,
            "withdrawn": self.withdrawn,
        }
