"""The exit codes with which each verb can end, for its help and for the table of docs/semantics.md#exit-codes."""

from __future__ import annotations

#: Codes of all verbs: what each means, and what a script does then.
OF_ALL = {
    0: ("done, or nothing to do", "go on"),
    1: ("a difference or damage was found, or an audit failed", "look at what is named; the same call ends alike"),
    2: ("wrong usage", "correct the call"),
    3: ("an error in a definition, or a limit exceeded", "correct the file that is named"),
    4: ("wrong or missing input", "correct or deliver what is named"),
    5: (
        "infrastructure: a lock, a disk, a killed process, a damaged table, an unexpected error",
        "call it again, up to three times some minutes apart; then look at what is named",
    ),
    130: ("stopped by Ctrl-C, and `backfill` and `restate` by SIGTERM, too", "call it again: it goes on from there"),
}

#: What no verb can rule out.
_ALWAYS = (0, 2, 5, 130)

_BROKEN = "a definition is wrong; all others were looked at"
_FILES = "files do not read as events of this source, or a column, key or time is missing"
_ROUNDS = "the model has no rounds on these days"
_CHAIN = "a day waits for an earlier one that this call was not to do, or needs states that are not kept"
_PUBLISHED = "days broke an expectation and were not published; the others were"

#: Verb → what 1, 3 and 4 mean for it; codes that are missing there are none of its own.
OF_VERB: dict[str, dict[int, str]] = {
    "generate": {},
    "ingest": {
        1: "rows of files or days do not add up; these days are not computed from",
        3: "the source is wrong, or an edit of it does not fit its tables",
        4: "files cannot be read as they are; all others were",
    },
    "detect": {1: _PUBLISHED, 3: "a pattern or its source is wrong, or a limit was exceeded", 4: _CHAIN},
    "monitor": {1: _PUBLISHED, 3: "a model or its source is wrong", 4: _CHAIN},
    "validate": {1: "published rows break an expectation, or are not those that were written", 3: _BROKEN},
    "plan": {3: "a definition cannot be computed; all others are planned", 4: _CHAIN},
    "backfill": {1: _PUBLISHED, 3: "a definition cannot be computed; all others were", 4: _CHAIN},
    "restate": {1: _PUBLISHED, 3: "a definition cannot be computed; all others were", 4: _CHAIN},
    "shadow": {1: "the edit would change rows, or its audit failed", 3: "the edited definition is wrong", 4: _CHAIN},
    "retire": {4: "the definition's file is still there"},
    "status": {1: "a source was ingested here and its tables are gone"},
    "check": {1: "a table does not hold what was written to it"},
    "sql": {},
    "contract": {},
    "views": {},
    "changes": {},
    "alerts": {3: "a definition with alerts is wrong"},
    "maintain": {},
    "tune": {3: "the model or its source is wrong", 4: _ROUNDS},
    "picture": {3: "the model or its source is wrong", 4: _ROUNDS},
    "report": {},
    "init": {4: "the source cannot be guessed from the file"},
    "match": {3: "the pattern or the source is wrong", 4: _FILES},
    "try": {3: "the model or its source is wrong", 4: _FILES},
    "backtest": {3: "the pattern or the source is wrong", 4: f"{_FILES}, or the labels are wrong"},
    "explain": {3: "the pattern or its source is wrong", 4: _FILES},
    "lint": {
        1: "there are warnings, with `--strict`",
        3: "a file has errors, or a test of a pattern fails",
        4: "what `--on` names is not a file",
    },
    "schema": {},
}


def help_lines(verb: str) -> str:
    """The codes of a verb in lines for its help."""
    own = OF_VERB[verb]
    meant = {code: own.get(code, meaning) for code, (meaning, _) in OF_ALL.items() if code in own or code in _ALWAYS}
    return "exit codes:\n" + "\n".join(f"  {code:<5}{meant[code].replace('`', '')}" for code in meant)
