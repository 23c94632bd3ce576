"""What can be wrong in a model's file. The section that was read adds the place (``Section.placed``)."""

from __future__ import annotations

from datetime import date

from chainlake.definitions.duration import USUAL
from chainlake.errors import DefinitionError


class WrongValue(DefinitionError):
    """The value of a key is missing, or of a kind that the key does not take."""

    @classmethod
    def missing(cls, key: str | int, give: str) -> WrongValue:
        """A key without a value; ``give`` says what it takes."""
        return cls(f"'{key}' is missing", hint=f"Give {give}.")

    @classmethod
    def no_text(cls, value: object) -> WrongValue:
        """The value is not a string, or is empty."""
        return cls(f"'{value}' is not a string", hint="Give a non-empty string.")

    @classmethod
    def no_key(cls, value: object) -> WrongValue:
        """The value cannot be one of the source's key column."""
        return cls(f"'{value}' is not a key", hint="Give a string; quote true, false and null.")

    @classmethod
    def no_keys(cls, key: str) -> WrongValue:
        """The value is not a list of values of the key column."""
        return cls(f"'{key}' is not a list of keys", hint="Give a non-empty list, such as [a, b, c].")

    @classmethod
    def key_twice(cls, name: str, key: str) -> WrongValue:
        """A value of the key column is listed twice."""
        return cls(f"'{name}' is given twice in '{key}'", hint="Name every key once.")

    @classmethod
    def no_switch(cls, value: object) -> WrongValue:
        """The value is neither true nor false."""
        return cls(f"'{value}' is not true or false", hint="Allowed: true, false.")

    @classmethod
    def no_number(cls, value: object) -> WrongValue:
        """The value is not a number, or not a finite one."""
        return cls(f"'{value}' is not a number", hint="Give a finite number, written as 7, -0.5 or 1e-3.")

    @classmethod
    def not_above(cls, value: float, above: float) -> WrongValue:
        """A number that is not large enough."""
        return cls(f"{value} is not above {above:g}", hint=f"Allowed: numbers above {above:g}.")

    @classmethod
    def below(cls, value: float, least: float) -> WrongValue:
        """A number below the smallest one allowed."""
        return cls(f"{value} is below {least:g}", hint=f"Allowed: numbers from {least:g} on.")

    @classmethod
    def no_whole(cls, value: object, key: str, allowed: str) -> WrongValue:
        """The value is not one of the whole numbers ``allowed``."""
        return cls(f"'{value}' is not a valid value of '{key}'", hint=f"Allowed: {allowed}.")

    @classmethod
    def no_duration(cls, value: object) -> WrongValue:
        """The value is not a length of time."""
        return cls(f"'{value}' is not a duration", hint=f"Allowed: 5 min; units {USUAL}.")

    @classmethod
    def no_day(cls, value: object) -> WrongValue:
        """The value is not a day."""
        return cls(f"'{value}' is not a day", hint="Allowed: a UTC day as YYYY-MM-DD.")

    @classmethod
    def no_mapping(cls, value: object, like: str) -> WrongValue:
        """The value is not a mapping; ``like`` shows one."""
        return cls(f"'{value}' is not a mapping", hint=f"Give {like}.")


class WrongColumns(DefinitionError):
    """The response, the features or other columns of a model cannot be computed as given."""

    @classmethod
    def no_list(cls, key: str, forms: str) -> WrongColumns:
        """The columns are not a list; ``forms``: what an entry may look like."""
        return cls(f"'{key}' is not a list", hint=f"Each entry: {forms}.")

    @classmethod
    def no_columns(cls, key: str, forms: str) -> WrongColumns:
        """The columns are not a list, or the list is empty."""
        return cls(f"'{key}' is not a list of columns", hint=f"Give a non-empty list; each entry: {forms}.")

    @classmethod
    def none(cls, forms: str) -> WrongColumns:
        """The model has no feature."""
        return cls("a model needs at least one feature", hint=f"Each entry: {forms}.")

    @classmethod
    def two_constants(cls) -> WrongColumns:
        """The constant is listed as a feature although ``intercept`` adds it."""
        return cls(
            "the constant is given both as a feature and by 'intercept', which is true unless set",
            hint="Drop the feature, or set intercept: false.",
        )

    @classmethod
    def constant(cls) -> WrongColumns:
        """A constant among columns where a constant has no meaning."""
        return cls("a constant has no effect here", hint="Drop it.")

    @classmethod
    def feature_twice(cls, name: str) -> WrongColumns:
        """Two features have the same name."""
        return cls(f"duplicate feature '{name}'", hint="Name every feature once.")

    @classmethod
    def column_twice(cls, name: str) -> WrongColumns:
        """Two columns have the same name."""
        return cls(f"duplicate column '{name}'", hint="Name every column once.")

    @classmethod
    def no_column(cls, value: object, forms: str) -> WrongColumns:
        """An entry has none of the forms."""
        return cls(f"'{value}' is not a column", hint=f"Allowed: {forms}.")

    @classmethod
    def two_sensors(cls) -> WrongColumns:
        """An entry gives both ``key`` and ``member`` to say whose value it takes."""
        return cls("'key' and 'member' exclude each other", hint="Drop one of the two.")

    @classmethod
    def two_values(cls) -> WrongColumns:
        """An entry is both a column and an expression."""
        hint = "Drop 'of': an expression names its columns itself."
        return cls("'of' and 'expression' exclude each other", hint=hint)

    @classmethod
    def named_column(cls) -> WrongColumns:
        """An entry has a name but no expression."""
        return cls("only an expression has a name", hint="A column is called as it is.")

    @classmethod
    def no_pair(cls, value: object) -> WrongColumns:
        """A range is not a pair of rising numbers."""
        return cls(f"'{value}' is not a pair of rising numbers", hint="Give [low, high].")

    @classmethod
    def no_transform(cls, step: object) -> WrongColumns:
        """There is no such transform."""
        return cls(f"'{step}' is not a transform", hint="Allowed: log, diff, lag N; or a list.")

    @classmethod
    def no_member(cls, name: str, member: int, fewest: int) -> WrongColumns:
        """A column takes the value of a node's N-th key, and some node has fewer keys."""
        what = f"'{name}' needs nodes of {member} keys, but one has {fewest}"
        return cls(what, hint=f"Allowed: members 1 to {fewest}.")


class WrongNodes(DefinitionError):
    """The nodes or groups of a model are not valid."""

    @classmethod
    def one_of_two(cls) -> WrongNodes:
        """Both nodes and groups are given, or neither."""
        hint = "Give nodes: [key, ...] for one model, or groups: {name: [key, ...]} for several of one kind."
        return cls("exactly one of 'nodes' and 'groups' is needed", hint=hint)

    @classmethod
    def no_groups(cls) -> WrongNodes:
        """``groups`` is empty."""
        return cls("'groups' is empty", hint="Give groups: {name: [key, ...]}.")

    @classmethod
    def dated(cls, what: str) -> WrongNodes:
        """A node joins or leaves in a kind of model whose nodes are fixed; ``what``: what the nodes are."""
        return cls(f"the {what} never change", hint="Drop from and to.")

    @classmethod
    def no_list(cls, key: str, forms: str) -> WrongNodes:
        """The nodes are not a list; ``forms``: what an entry may look like."""
        return cls(f"'{key}' is not a list of nodes", hint=f"Give a non-empty list; each entry: {forms}.")

    @classmethod
    def twice(cls, name: str, key: str) -> WrongNodes:
        """Two nodes have one name."""
        return cls(f"duplicate node '{name}' in '{key}'", hint="Name every node once.")

    @classmethod
    def no_node(cls, value: object, forms: str) -> WrongNodes:
        """An entry has none of the forms."""
        return cls(f"'{value}' is not a node", hint=f"Allowed: {forms}.")

    @classmethod
    def no_name(cls) -> WrongNodes:
        """A node of several keys has no name."""
        return cls("a node of several keys needs a name", hint="Give name: a string.")

    @classmethod
    def two_dates(cls) -> WrongNodes:
        """The days of a node are given in two ways."""
        return cls("'dates' is given together with 'from' or 'to'", hint="Put all periods into dates.")

    @classmethod
    def no_dates(cls) -> WrongNodes:
        """The days of a node are not a list of ranges."""
        return cls("'dates' is not a list of periods", hint="Give [{from: DAY, to: DAY}, ...].")

    @classmethod
    def unordered(cls, first: date | None, before: date | None) -> WrongNodes:
        """A range begins before the one listed before it has ended."""
        hint = "Give the periods in order, with at least a day between them."
        return cls(f"the period from {first} does not come after the one to {before}", hint=hint)

    @classmethod
    def ends_before(cls, end: date, first: date) -> WrongNodes:
        """A range without a day."""
        return cls(f"'to' {end} is not after 'from' {first}", hint="'to' is the day after the last one.")

    @classmethod
    def missing(cls) -> WrongNodes:
        """A kind of model that takes no groups is given no nodes."""
        return cls("'nodes' is missing", hint="Give nodes: [key, ...].")


class WrongRounds(DefinitionError):
    """The rounds of a model do not fit the day or its nodes."""

    @classmethod
    def no_day(cls) -> WrongRounds:
        """A day is not a whole number of rounds."""
        return cls("a whole number of rounds must fill a day", hint="Allowed: 1 s, 1 min, 5 min, 1 h, ...")

    @classmethod
    def few_nodes(cls, wanted: int, there: int) -> WrongRounds:
        """``min_nodes`` asks for more nodes than there are."""
        what = f"min_nodes is {wanted}, but a group sometimes has no more than {there} nodes"
        return cls(what, hint=f"Allowed: 1 to {there}.")


class WrongFit(DefinitionError):
    """The settings of the fit do not suit the model's columns and nodes."""

    @classmethod
    def undetermined(cls, nodes: int, rounds: int, coefficients: int) -> WrongFit:
        """The window has fewer values than the model has coefficients."""
        what = f"{nodes} nodes x {rounds} rounds cannot determine {coefficients} coefficients"
        return cls(what, hint=f"Allowed: windows of at least {-(-coefficients // nodes)} rounds, or set ridge.")

    @classmethod
    def no_gap(cls) -> WrongFit:
        """``on_gap`` says what to do at a gap, but nothing says what counts as a gap."""
        return cls("on_gap needs session_gap", hint="Give session_gap: a duration such as 2 h.")

    @classmethod
    def no_baseline(cls) -> WrongFit:
        """The longest period of the periodic baseline is given, but that baseline is not asked for."""
        return cls("per_Tmax needs per_baseline", hint="Set per_baseline: true, or leave per_Tmax out.")

    @classmethod
    def one_window(cls) -> WrongFit:
        """Several kinds of window are given, or none."""
        return cls("exactly one kind of window is needed", hint="Allowed: {sliding: N}, {infinite: N}.")

    @classmethod
    def phi(cls, value: object, allowed: str) -> WrongFit:
        """``phi`` is not a valid correlation of neighbouring rounds."""
        return cls(f"'{value}' is not a valid value of 'phi'", hint=allowed)

    @classmethod
    def ridge(cls, columns: int) -> WrongFit:
        """The penalty is neither a number nor a matrix of the right form."""
        hint = f"Allowed: a number, or a symmetric positive semidefinite {columns} x {columns} matrix."
        return cls("the ridge matrix does not fit the features", hint=hint)
