"""Quality gates: Great Expectations suites on what is about to be published, and their Data Docs.

Importing this package imports neither Great Expectations nor Spark; ``warm_up()`` starts to import the former in the
background.

* ``audit``: runs a suite on a few rows; the failures with their examples
* ``templates``: fills in the files of ``expectations/``, which have the checks and the sentences that explain them
* ``matches``: (a room) the gate of match tables
* ``gates``: (a room) the gates of all other tables
* ``days``: a suite on all days at once and, if it fails, on each
* ``verdict``: which days may be published, and why others may not
* ``published``: the same suites on published tables, for ``validate``
* ``docs``: the site of Data Docs: what it keeps, and when it is built
* ``pages``: the pages of Data Docs as HTML: what is shown of an expectation and of the rows that break it
* ``frames``: Arrow tables as the frames on which suites run
* ``configurations``: saves repeated work inside Great Expectations
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
