"""How the matches that a policy wants are found, and why (docs/performance.md#contexts).

* ``S``: the kernel chooses, one last event after another; matches that are not chosen are never built.
* ``P``: all matches are found, then the wanted ones are chosen.
* ``B``: the same in one block of time after another, each knowing what earlier blocks used up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainlake.cep.language.normal_form import Branch
from chainlake.cep.pattern import Pattern
from chainlake.cep.plan.completion import completion_of
from chainlake.cep.plan.pause import neighbours
from chainlake.cep.policy import Policy
from chainlake.cep.search.compiled.best import Wanted

MODES = ("auto", "S", "P", "B")


@dataclass(frozen=True)
class Ability:
    """Whether a kernel can choose.

    Args:
        wanted: what it chooses; None if it cannot.
        why: the reason, in one phrase.
    """

    wanted: Wanted | None
    why: str


def kernel_choice(pattern: Pattern, branch: Branch) -> Ability | None:
    """Whether a kernel can choose among the matches of a branch; None if all matches of the pattern are wanted."""
    policy = pattern.extras.policy
    if policy is None or policy == Policy():
        return None
    if branch.called:
        return Ability(None, f"{branch.called[0]} is called with many pairs at a time")
    pairs = neighbours(branch)
    if not pairs:
        return Ability(None, "no sequence of two or more names says which event is the last one")
    if not completion_of(branch, pattern.extras.pause).is_nothing:
        return Ability(None, "UNTIL is tested on whole matches")
    if policy.consumes and len(pattern.branches) > 1:
        return Ability(None, "matches of several branches use up the same events")
    names = (pairs[0][0], *(later for _, later in pairs))
    taken = {"all": names, "initiator": names[:1], "none": ()}.get(str(policy.consume), policy.consume)
    select = policy.select
    if select == "each" and not policy.together and names[-1] in taken:
        # The first match uses up the last event, so there is no other match with it.
        select = "first"
    if select not in ("first", "last", "per_initiator", "accumulate"):
        return Ability(None, _EVERY.get(select, "every match of a last event is wanted"))
    what = "one last event after another" if policy.consumes else "of each last event the best match"
    return Ability(Wanted(select, names, tuple(taken), policy.together), f"{what}, by the kernel")


def why_not(able: Sequence[Ability | None], mode: str) -> str:
    """Why no kernel chose, in one phrase."""
    if mode in ("P", "B"):
        return "as asked for"
    for one in able:
        if one is None:
            return "all matches are wanted"
        if one.wanted is None:
            return one.why
    return "machine code was not worth it" if len(able) == 1 else "the best matches of the branches are compared"


def mode_text(pattern: Pattern, branch: Branch, compiled: bool) -> str | None:
    """How the matches of a branch are chosen and why, in words; None if the pattern does not choose.

    Args:
        pattern: the pattern.
        branch: one of its branches.
        compiled: whether it runs as machine code.
    """
    policy = pattern.extras.policy
    if policy is None:
        return None
    able = kernel_choice(pattern, branch)
    if able is not None and able.wanted is not None and compiled:
        return f"S: {able.why}"
    beyond = "; of very many, in blocks of time (B)" if policy.consumes else ""
    return f"P: all matches are found, then chosen among: {why_not([able], 'auto')}{beyond}"


_EVERY = {"pick": "PICK compares all matches of a last event"}
