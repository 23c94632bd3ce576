"""What is wrong in the file of a model. The section that was read says where it stands (``Section.placed``)."""

from __future__ import annotations

from datetime import date

from chainlake.definitions.duration import USUAL
from chainlake.errors import DefinitionError


class WrongValue(DefinitionError):
    """What stands under a key is missing, or not of the kind that it takes."""

    @classmethod
    def missing(cls, key: str | int, give: str) -> WrongValue:
        """A key without a value; ``give`` says what it takes."""
        return cls(f"'{key}' is missing", hint=f"Give {give}.")

    @classmethod
    def no_text(cls, value: object) -> WrongValue:
        """It is no text, or an empty one."""
        return cls(f"'{value}' is not a text", hint="Give a non-empty text.")

    @classmethod
    def no_key(cls, value: object) -> WrongValue:
        """It is no value of the source's key column."""
        return cls(f"'{value}' is not a key", hint="Give a text; quote true, false and null.")

    @classmethod
    def no_keys(cls, key: str) -> WrongValue:
        """It is no list of such values."""
        return cls(f"'{key}' is not a list of keys", hint="Give a non-empty list, such as [a, b, c].")

    @classmethod
    def key_twice(cls, name: str, key: str) -> WrongValue:
        """One of them is listed twice."""
        return cls(f"'{name}' is given twice in '{key}'", hint="Name every key once.")

    @classmethod
    def no_switch(cls, value: object) -> WrongValue:
        """It is neither true nor false."""
        return cls(f"'{value}' is not true or false", hint="Allowed: true, false.")

    @classmethod
    def no_number(cls, value: object) -> WrongValue:
        """It is no number, or an infinite one."""
        return cls(f"'{value}' is not a number", hint="Give a finite number, written as 7, -0.5 or 1e-3.")

    @classmethod
    def not_above(cls, value: float, above: float) -> WrongValue:
        """A number that is not large enough."""
        return cls(f"{value} is not above {above:g}", hint=f"Allowed: numbers above {above:g}.")

    @classmethod
    def below(cls, value: float, least: float) -> WrongValue:
        """A number below the least one."""
        return cls(f"{value} is below {least:g}", hint=f"Allowed: numbers from {least:g} on.")

    @classmethod
    def no_whole(cls, value: object, key: str, allowed: str) -> WrongValue:
        """It is no whole number of those ``allowed``."""
        return cls(f"'{value}' is not a valid value of '{key}'", hint=f"Allowed: {allowed}.")

    @classmethod
    def no_duration(cls, value: object) -> WrongValue:
        """It is no length of time."""
        return cls(f"'{value}' is not a duration", hint=f"Allowed: 5 min; units {USUAL}.")

    @classmethod
    def no_day(cls, value: object) -> WrongValue:
        """It is no day."""
        return cls(f"'{value}' is not a day", hint="Allowed: a UTC day as YYYY-MM-DD.")

    @classmethod
    def no_mapping(cls, value: object, like: str) -> WrongValue:
        """It is no mapping; ``like`` shows one."""
        return cls(f"'{value}' is not a mapping", hint=f"Give {like}.")


class WrongColumns(DefinitionError):
    """The response, the features or other columns of a model are not such as can be computed."""

    @classmethod
    def no_list(cls, key: str, forms: str) -> WrongColumns:
        """They are no list; ``forms``: those of an entry."""
        return cls(f"'{key}' is not a list", hint=f"Each entry: {forms}.")

    @classmethod
    def no_columns(cls, key: str, forms: str) -> WrongColumns:
        """They are no list, or an empty one."""
        return cls(f"'{key}' is not a list of columns", hint=f"Give a non-empty list; each entry: {forms}.")

    @classmethod
    def none(cls, forms: str) -> WrongColumns:
        """There is not one."""
        return cls("a model needs at least one feature", hint=f"Each entry: {forms}.")

    @classmethod
    def two_constants(cls) -> WrongColumns:
        """The constant is a feature, and there by itself."""
        return cls(
            "the constant is given both as a feature and by 'intercept', which is true unless set",
            hint="Drop the feature, or set intercept: false.",
        )

    @classmethod
    def constant(cls) -> WrongColumns:
        """A constant among columns that a constant says nothing to."""
        return cls("a constant says nothing here", hint="Drop it.")

    @classmethod
    def feature_twice(cls, name: str) -> WrongColumns:
        """Two features are one."""
        return cls(f"duplicate feature '{name}'", hint="Name every feature once.")

    @classmethod
    def column_twice(cls, name: str) -> WrongColumns:
        """Two columns are one."""
        return cls(f"duplicate column '{name}'", hint="Name every column once.")

    @classmethod
    def no_column(cls, value: object, forms: str) -> WrongColumns:
        """An entry has none of the forms."""
        return cls(f"'{value}' is not a column", hint=f"Allowed: {forms}.")

    @classmethod
    def two_sensors(cls) -> WrongColumns:
        """An entry says in two ways whose value it takes."""
        return cls("'key' and 'member' exclude each other", hint="Drop one of the two.")

    @classmethod
    def two_values(cls) -> WrongColumns:
        """An entry is a column and an expression."""
        hint = "Drop 'of': an expression names its columns itself."
        return cls("'of' and 'expression' exclude each other", hint=hint)

    @classmethod
    def named_column(cls) -> WrongColumns:
        """An entry has a name and no expression."""
        return cls("only an expression has a name", hint="A column is called as it is.")

    @classmethod
    def no_pair(cls, value: object) -> WrongColumns:
        """A range is no pair of numbers."""
        return cls(f"'{value}' is not a pair of rising numbers", hint="Give [low, high].")

    @classmethod
    def no_transform(cls, step: object) -> WrongColumns:
        """There is no such transform."""
        return cls(f"'{step}' is not a transform", hint="Allowed: log, diff, lag N; or a list.")

    @classmethod
    def no_member(cls, name: str, member: int, fewest: int) -> WrongColumns:
        """A column takes the value of a key that not every node has."""
        what = f"'{name}' needs nodes of {member} keys, one has {fewest}"
        return cls(what, hint=f"Allowed: members 1 to {fewest}.")


class WrongNodes(DefinitionError):
    """The nodes or groups of a model are not such as can be followed."""

    @classmethod
    def one_of_two(cls) -> WrongNodes:
        """There are both nodes and groups, or none of the two."""
        hint = "Give nodes: [key, ...] for one model, or groups: {name: [key, ...]} for several of one kind."
        return cls("exactly one of 'nodes' and 'groups' is needed", hint=hint)

    @classmethod
    def no_groups(cls) -> WrongNodes:
        """There is no group."""
        return cls("'groups' is empty", hint="Give groups: {name: [key, ...]}.")

    @classmethod
    def dated(cls, what: str) -> WrongNodes:
        """A node joins or leaves where none may; ``what``: what the nodes are."""
        return cls(f"the {what} do not change", hint="Drop from and to.")

    @classmethod
    def no_list(cls, key: str, forms: str) -> WrongNodes:
        """They are no list; ``forms``: those of an entry."""
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
        """A node of several keys is called like none of them."""
        return cls("a node of several keys needs a name", hint="Give name: a text.")

    @classmethod
    def two_dates(cls) -> WrongNodes:
        """The days of a node are given in two ways."""
        return cls("'dates' is given besides 'from' or 'to'", hint="Put all stretches into dates.")

    @classmethod
    def no_dates(cls) -> WrongNodes:
        """The days of a node are no list of stretches."""
        return cls("'dates' is not a list of stretches", hint="Give [{from: DAY, to: DAY}, ...].")

    @classmethod
    def unordered(cls, first: date | None, before: date | None) -> WrongNodes:
        """A stretch begins before the one that is listed before it has ended."""
        hint = "Give the stretches in order, with at least a day between them."
        return cls(f"the stretch from {first} does not come after the one to {before}", hint=hint)

    @classmethod
    def ends_before(cls, end: date, first: date) -> WrongNodes:
        """A stretch without a day."""
        return cls(f"'to' {end} is not after 'from' {first}", hint="'to' is the day after the last one.")

    @classmethod
    def missing(cls) -> WrongNodes:
        """A kind of model that has no groups has no nodes."""
        return cls("'nodes' is missing", hint="Give nodes: [key, ...].")


class WrongRounds(DefinitionError):
    """The rounds of a model do not fit the day or its nodes."""

    @classmethod
    def no_day(cls) -> WrongRounds:
        """They do not fill a day."""
        return cls("a whole number of rounds must fill a day", hint="Allowed: 1 s, 1 min, 5 min, 1 h, ...")

    @classmethod
    def few_nodes(cls, wanted: int, there: int) -> WrongRounds:
        """A round asks for more nodes than there are."""
        what = f"min_nodes is {wanted}, a group has at times no more than {there} nodes"
        return cls(what, hint=f"Allowed: 1 to {there}.")


class WrongFit(DefinitionError):
    """What a model is fitted by does not fit its columns and nodes."""

    @classmethod
    def undetermined(cls, nodes: int, rounds: int, coefficients: int) -> WrongFit:
        """There are fewer values than coefficients."""
        what = f"{nodes} nodes x {rounds} rounds cannot determine {coefficients} coefficients"
        return cls(what, hint=f"Allowed: windows of at least {-(-coefficients // nodes)} rounds, or set ridge.")

    @classmethod
    def no_gap(cls) -> WrongFit:
        """What to do at a gap is said, and not what a gap is."""
        return cls("on_gap needs session_gap", hint="Give session_gap: a duration such as 2 h.")

    @classmethod
    def no_baseline(cls) -> WrongFit:
        """The longest period of a comparison is said that is not made."""
        return cls("per_Tmax needs per_baseline", hint="Set per_baseline: true, or leave per_Tmax out.")

    @classmethod
    def one_window(cls) -> WrongFit:
        """There are several kinds of window, or none."""
        return cls("exactly one kind of window is needed", hint="Allowed: {sliding: N}, {infinite: N}.")

    @classmethod
    def phi(cls, value: object, allowed: str) -> WrongFit:
        """The correlation of neighbours is none."""
        return cls(f"'{value}' is not a valid value of 'phi'", hint=allowed)

    @classmethod
    def ridge(cls, columns: int) -> WrongFit:
        """The penalty is neither a number nor a matrix that fits."""
        hint = f"Allowed: a number, or a symmetric positive semidefinite {columns} x {columns} matrix."
        return cls("the ridge matrix does not fit the features", hint=hint)
