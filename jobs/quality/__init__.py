"""Quality gates: Great Expectations suites on what is about to be published, and their Data Docs (design §7).

Importing this package imports neither Great Expectations nor Spark; ``warm_up()`` begins to, in the background.
"""

from jobs.quality.accounting import audit_accounting
from jobs.quality.audit import Audit, AuditResult, Failure, warm_up
from jobs.quality.match_files import MatchFiles
from jobs.quality.match_sql import MatchRules
from jobs.quality.matches import audit_matches
from jobs.quality.models import audit_models

__all__ = [
    "Audit", "AuditResult", "Failure", "MatchFiles", "MatchRules", "audit_accounting", "audit_matches", "audit_models",
    "warm_up",
]  # fmt: skip
