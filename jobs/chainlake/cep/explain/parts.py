"""A pattern's bounds, its conditions and what completes its matches, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from chainlake.cep.compiling.episodes import EpisodeRule
from chainlake.cep.compiling.tail import UNBOUNDED, Ranking
from chainlake.cep.heavy.batches import MOST
from chainlake.cep.language import ast
from chainlake.cep.language.computed import rebuilt
from chainlake.cep.language.formatter import format_node
from chainlake.cep.language.normal_form import Branch, Clause
from chainlake.cep.pattern import Pattern
from chainlake.cep.search.bounding.strategy import strategies
from chainlake.definitions.duration import UNITS

_SELECTS = {
    "each": "all of them",
    "first": "the first",
    "last": "the latest, read back from the last event",
    "per_initiator": "the first of each first event",
    "accumulate": "all of them as one row",
}


def bounds(pattern: Pattern) -> Iterator[str]:
    """How far apart the events of a match may be, which matches are kept and when they are decided."""
    extras = pattern.extras
    window = duration(pattern, pattern.window_us)
    if pattern.window_us < UNBOUNDED:
        yield f"window    {window}: the first and the last event are at most this far apart"
    elif pattern.longest is not None:
        longest = duration(pattern, pattern.longest)
        yield f"longest   {longest}: a longer stretch of neighbours gives no match, and is counted"
    if extras.pause is not None:
        yield f"pause     {duration(pattern, extras.pause)}: neighbouring events of a match are at most this far apart"
    if extras.keep:
        how = {"MAXIMAL": "name by name", "OUTERMOST": "whatever their names"}[extras.keep]
        yield f"keeps     no match whose events are all among those of another one, {how}"
    if extras.policy is not None:
        yield f"selects   of the matches with the same last event {_selected(pattern)}"
    yield f"decision  {_decision(pattern, window)}"
    if pattern.reach_us < UNBOUNDED:
        back = duration(pattern, -pattern.read_range(0, 0)[0])
        yield f"reads     for matches decided in [s, e): events with ts in [s - {back}, e)"
    else:
        yield "reads     for matches decided in [s, e): all events with ts before e"
    for measure, value in zip(extras.measures, extras.measured, strict=False):
        yield f"measure   {measure.name}: {format_node(_readable(value))}"
    if extras.episodes is not None:
        yield from _episodes(pattern, extras.episodes)


def _episodes(pattern: Pattern, rule: EpisodeRule) -> Iterator[str]:
    pause, wait = duration(pattern, rule.pause), duration(pattern, rule.pause + pattern.decided_us)
    top = "the top one is the most severe" if rule.severe else "the top one is the first"
    yield f"episodes  matches of one {rule.written} at most {pause} apart are one episode; {top}"
    yield f"          decided {wait} after their last event: until then a match may join them"


_BETTER = {"": "", "lex": ", compared one after another"}


def ranking(pattern: Pattern) -> Iterator[str]:
    """How the matches of a ranked pattern are ranked, and how the best ones are found."""
    found = pattern.extras.ranking
    if found is None:
        return
    rule = found.rule
    number = 0
    for score in rule.scores:
        criteria = []
        for one in score.criteria:
            value = found.written[number]
            text = f"{'MAX' if one.highest else 'MIN'}({format_node(_readable(value))})"
            text += "" if one.norm is None else f" from {one.norm[0]:g} to {one.norm[1]:g}"
            criteria.append(text + (f" times {one.weight:g}" if score.combine == "wsum" else ""))
            number += 1
        how = _BETTER.get(score.combine, f", their {score.combine}")
        yield f"ranks     by {', '.join(criteria)}{how}"
    values = [format_node(_readable(value)) for value in found.written[number:]]
    each = f" for each {', '.join(values[: rule.per])}" if rule.per else ""
    yield f"keeps     the best {rule.count:,} of {_period(pattern)}{each}{', and ties' * rule.with_ties}"
    if rule.distinct:
        yield f"          at most {rule.most:,} of them with the same {', '.join(values[rule.per :])}"
    if rule.non_overlapping:
        yield "          none with an event of a better one"
    if rule.least is not None:
        yield f"          none with a score below {rule.least:g}"
    if rule.quantum is not None:
        yield f"          scores that round to the same multiple of {rule.quantum:g} are equal"
    elif rule.with_ties and _is_computed(found):
        yield "          ties are equal to the last digit of a double; QUANTUM makes nearly equal scores tie"
    able = strategies(pattern)
    best = able.allowed[0]
    yield f"strategy  {best}: {_STRATEGIES[best]}"
    yield from (f"          no {name}: {why}" for name, why in sorted(able.why_not.items()))


#: Functions whose equal results are equal doubles, whatever they were computed from.
_ROUNDING = frozenset({"round", "floor", "ceil"})


def _is_computed(of: Ranking) -> bool:
    """Whether scores that should be equal may differ in their last digits, and QUANTUM could make them equal."""
    if of.rule.scores[0].combine == "lex":
        return False
    combined = any(one.combine or one.criteria[0].norm for one in of.rule.scores)
    return combined or any(map(_is_rounded, of.written[: of.criteria]))


def _is_rounded(value: ast.Node) -> bool:
    """Whether the doubles of a value may be off in their last digits."""
    if isinstance(value, ast.Call) and value.function in _ROUNDING:
        return False
    return any(
        isinstance(part, ast.Arithmetic | ast.Call)
        or isinstance(part, ast.Aggregate)
        and ast.AGGREGATES[part.function].numbers == "double"
        for part in value.walk()
    )


_STRATEGIES = {
    "A": "all matches are found block by block; each list remembers those that it can still keep",
    "B": "one pass over the events keeps the best beginnings; C if the window is shorter than the span of the events",
    "C": "what cannot be among the best of any list is skipped, unless that turns out not to pay off",
}


def _period(pattern: Pattern) -> str:
    assert pattern.extras.ranking is not None
    period = pattern.extras.ranking.rule.period
    if period.kind == "all":
        return "all matches"
    if period.kind == "hop":
        size, step = duration(pattern, period.size), duration(pattern, period.step)
        return f"each window of {size}, one every {step}, that holds a match"
    if period.kind == "bucket":
        which = "first" if period.by_first else "last"
        return f"each bucket of {duration(pattern, period.size)} by the {which} event"
    return f"each {period.kind} in {period.zone} by the last event"


def _selected(pattern: Pattern) -> str:
    policy = pattern.extras.policy
    assert policy is not None
    if policy.picks:
        which = ", then ".join(f"those with the {'last' if one.last else 'first'} {one.name}" for one in policy.picks)
    else:
        which = _SELECTS[policy.select]
    if not policy.consumes:
        return f"{which}; no event is used up"
    used = policy.consume if isinstance(policy.consume, str) else ", ".join(policy.consume)
    used = {"all": "all of its events", "initiator": "its first event"}.get(used, used)
    return f"{which}; it uses up {used}{', with the others of that last event' if policy.together else ''}"


def _decision(pattern: Pattern, window: str) -> str:
    if pattern.decision == "end":
        return "at the last event"
    if pattern.decision == "pause":
        pause = duration(pattern, pattern.extras.pause or 0)
        whole = f", at the latest {window} after the first event" if pattern.window_us < UNBOUNDED else ""
        return f"{pause} after the end of its stretch of neighbours{whole}: until then a larger one may come"
    if pattern.extras.keep:
        return f"{window} after the first event: until then a larger one may come"
    sets = any(branch.collected for branch in pattern.branches)
    what = "an event that it collects" if sets and not _forbids_later(pattern) else "a forbidden event"
    return f"{window} after the first event: until then {what} may still come"


def _forbids_later(pattern: Pattern) -> bool:
    return any(branch.open_right(name) for branch in pattern.branches for name in branch.negated)


def completions(branch: Branch) -> Iterator[str]:
    """What is looked for once the other events of a match are bound."""
    for one in branch.collected:
        empty = ", which may be none" if one.may_be_empty else ""
        where = _where(branch.clauses_of(one.name))
        yield f"  collects  {one.name} {branch.types[one.name]}: all that fit{empty}{where}"
    if branch.finished:
        yield f"  sets      {conjunction(branch.finished)}"
    for name in branch.until:
        yield f"  until     {name} {branch.types[name]}: none inside a match{_where(branch.clauses_of(name))}"


def neighbours(branch: Branch) -> Iterator[str]:
    """How a branch of neighbours is searched."""
    stream = branch.stream
    assert stream is not None
    types = "all types" if stream.types is None else f"the types {', '.join(sorted(stream.types))}"
    yield f"  neighbours of {types}{', each key separately' if stream.by_key else ', of all keys together'}"
    for name in branch.positive:
        clauses = [c for c in branch.clauses if name in c.names and c.names <= _until(branch, name)]
        many = "one or more " if name in branch.kleene else ""
        yield f"  then      {many}{name}{_where(clauses)}"


def _until(branch: Branch, name: str) -> frozenset[str]:
    """The names up to and including ``name``."""
    return frozenset(branch.positive[: branch.positive.index(name) + 1])


def _where(clauses: Iterable[Clause]) -> str:
    text = conjunction(clauses)
    return f" where {text}" if text else ""


def conjunction(clauses: Iterable[Clause]) -> str:
    """Clauses as one condition, in the words of the language."""
    parts = [_one_or(ast.Any, tuple(map(_readable, clause.literals))) for clause in clauses]
    return format_node(_one_or(ast.All, tuple(parts))) if parts else ""


def _one_or(several: type[ast.All] | type[ast.Any], of: tuple[ast.Node, ...]) -> ast.Node:
    return of[0] if len(of) == 1 else several(of)


def _readable(node: ast.Node) -> ast.Node:
    """The same node with each duration as a word in its largest exact unit."""
    if isinstance(node, ast.Duration):
        return ast.Word(in_units(node.seconds))
    match node:
        case ast.Compare("=", ast.Ref(_, _, _, ast.Like() as test), ast.Literal(bool() as fits)):
            return replace(test, negated=not fits)
    if isinstance(node, ast.Prev) and isinstance(node.gap, int):
        return replace(node, gap=ast.Word(in_units(Fraction(node.gap, 1_000_000))))
    return rebuilt(node, _readable)


def duration(pattern: Pattern, ticks: int) -> str:
    """A length of time of the pattern, in its largest exact unit."""
    return in_units(Fraction(ticks, 1_000_000)) if pattern.strict else str(ticks)


def in_units(seconds: Fraction) -> str:
    """A length of time in its largest exact unit."""
    for unit in ("d", "h", "min", "s"):
        count = seconds / UNITS[unit]
        if count.denominator == 1 and (count or unit == "s"):
            return f"{count} {unit}"
    milliseconds = seconds * 1000
    return f"{milliseconds if milliseconds.denominator == 1 else float(milliseconds)} ms"


def calls(branch: Branch, asked: Mapping[str, float]) -> Iterator[str]:
    """The functions of pairs that a branch calls, when, and for about how many pairs, if that is known."""
    seen: set[str] = set()
    for call in (call for clause in branch.every_clause for literal in clause.literals for call in literal.heavy):
        if call.own is None or call.own.heavy is None or call.written in seen:
            continue
        seen.add(call.written)
        names = sorted(call.names)
        once = f", once for each {'pair' if len(names) == 2 else 'event'}" if len(names) <= 2 else ""
        of = f"{call.function} of {' and '.join(names)}, about {call.own.heavy.us:g} ms for 1,000"
        yield f"  calls     {of}: by NumPy, where all cheaper conditions of the step hold{once}"
        if call.written in asked:
            what = {1: "", 2: "pairs of "}.get(len(names), "combinations of ")
            yield f"            for about {asked[call.written]:,.0f} {what}events, up to {MOST:,} at a time"
