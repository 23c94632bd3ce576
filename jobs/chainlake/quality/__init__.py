"""Quality gates: Great Expectations suites on what is about to be published, and their Data Docs.

Importing this package imports neither Great Expectations nor Spark; ``warm_up()`` starts to import the former in the
background.
"""

from chainlake.quality.audit import Audit, AuditResult, Failure, warm_up
from chainlake.quality.gates.accounting import audit_accounting
from chainlake.quality.gates.models import audit_models
from chainlake.quality.matches.files import MatchFiles
from chainlake.quality.matches.gate import audit_matches
from chainlake.quality.matches.rules import MatchRules
from chainlake.quality.verdict import DaysBroken, Verdict

__all__ = [
    "Audit", "AuditResult", "DaysBroken", "Failure", "MatchFiles", "MatchRules", "Verdict", "audit_accounting",
    "audit_matches", "audit_models", "warm_up",
]  # fmt: skip
