"""Which matches a pattern wants: contexts are names for selections with consumption."""

from __future__ import annotations

from dataclasses import dataclass

from chainlake.cep.language import ast
from chainlake.cep.language.errors.names import UnknownEvent
from chainlake.cep.language.errors.structure import NotTogether, UnfitPick
from chainlake.cep.language.normal_form import Branch
from chainlake.cep.language.resolve import Resolver
from chainlake.cep.language.source_text import SourceText

#: For each context: what is selected, what is used up, and whether all matches of a terminator are published together.
_CONTEXTS = {
    "unrestricted": ("each", "none", False),
    "recent": ("last", "none", False),
    "chronicle": ("first", "all", False),
    "continuous": ("per_initiator", "initiator", True),
    "cumulative": ("accumulate", "all", False),
}


@dataclass(frozen=True)
class PickRule:
    """One clause of PICK.

    Args:
        name: the name whose event is chosen.
        last: whether the last event is chosen, not the first.
        within: how far it may be from the event of ``origin``, in ticks, or None.
        origin: the other name, or None.
    """

    name: str
    last: bool
    within: int | None = None
    origin: str | None = None


@dataclass(frozen=True)
class Policy:
    """Which matches are published and which events they use up.

    Args:
        select: ``each``, ``first``, ``last``, ``per_initiator``, ``accumulate`` or ``pick``.
        consume: ``all``, ``none``, ``initiator``, or names whose events are used up.
        together: whether the matches of one terminator are published together, and use events up afterwards.
        picks: in the order in which they are made.
    """

    select: str = "each"
    consume: str | tuple[str, ...] = "none"
    together: bool = False
    picks: tuple[PickRule, ...] = ()

    @property
    def consumes(self) -> bool:
        """Whether events are used up, so that matches depend on earlier ones."""
        return self.consume != "none"

    @property
    def accumulates(self) -> bool:
        """Whether all matches of a terminator become one row."""
        return self.select == "accumulate"


def policy_of(source: SourceText, query: ast.Query, branches: tuple[Branch, ...], resolver: Resolver) -> Policy | None:
    """The policy of a query, or None if it wants all matches.

    Raises:
        DefinitionError: the policy cannot be combined with the structure, or names events that are not there.
    """
    wanted = query.selection
    if wanted is None:
        return None
    _check_structure(source, query, branches, wanted)
    if wanted.context:
        select, consume, together = _CONTEXTS[wanted.context]
        return Policy(select, consume, together)
    names = frozenset(name for branch in branches for name in branch.positive)
    if isinstance(wanted.consume, tuple):
        for name in wanted.consume:
            _check_name(source, name, names, wanted)
    picks = tuple(_pick(source, one, wanted, names, resolver) for one in wanted.picks)
    for number, one in enumerate(wanted.picks):
        if one.name in [earlier.name for earlier in wanted.picks[:number]]:
            raise UnfitPick.twice(source, one.at, one.name)
    _check_origins(source, wanted)
    select = "pick" if picks else wanted.select or "each"
    return Policy(select, wanted.consume or "none", wanted.per == "terminator", picks)


def _pick(
    source: SourceText, one: ast.Pick, wanted: ast.Selection, names: frozenset[str], resolver: Resolver
) -> PickRule:
    _check_name(source, one.name, names, wanted)
    if one.within is None:
        return PickRule(one.name, one.last)
    _check_name(source, str(one.origin), names, wanted)
    return PickRule(one.name, one.last, resolver.window(one.within, "distance"), one.origin)


def _check_origins(source: SourceText, wanted: ast.Selection) -> None:
    """The origin of a distance is picked earlier, or not picked at all."""
    order = [one.name for one in wanted.picks]
    for number, one in enumerate(wanted.picks):
        if one.origin == one.name:
            raise UnfitPick.own_origin(source, one.at, one.name)
        if one.origin in order[number:]:
            raise UnfitPick.origin_later(source, one.at, str(one.origin), one.name)


def _check_name(source: SourceText, name: str, names: frozenset[str], wanted: ast.Selection) -> None:
    if name not in names:
        raise UnknownEvent.in_match(source, wanted.at, name, names)


def _check_structure(source: SourceText, query: ast.Query, branches: tuple[Branch, ...], wanted: ast.Selection) -> None:
    """Check that a selection is of matches of single events, in which nothing is known only later.

    Raises:
        DefinitionError: the pattern has something else.
    """
    events = [event for branch in query.branches for event in ast.events_of(branch.structure)]
    words = {
        "a repeated event": next((e.at for e in events if e.kleene), None),
        "COLLECT": next((e.at for e in events if e.role is ast.Role.COLLECTED), None),
        "?": next((e.at for e in events if e.optional and e.role is ast.Role.BOUND), None),
        "SEQ STRICT": next((b.at for b in query.branches if getattr(b.structure, "strict", "")), None),
        query.keep: wanted.at if query.keep else None,
    }
    for word, at in words.items():
        if at is not None:
            raise NotTogether.selection(source, at, word)
    for branch in branches:
        for name in branch.gaps:
            if branch.open_left(name) or branch.open_right(name):
                raise NotTogether.selection_and_end(source, next(e.at for e in events if e.name == name), name)
