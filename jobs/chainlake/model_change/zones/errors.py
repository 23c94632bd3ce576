"""What can be wrong in the file of a model that watches a region."""

from __future__ import annotations

from collections.abc import Sequence

from chainlake.errors import DefinitionError


class WrongRegion(DefinitionError):
    """A region that is not valid."""

    @classmethod
    def one_form(cls, forms: str) -> WrongRegion:
        """The region has several forms, or none of those allowed."""
        return cls("exactly one form of region is needed", hint=f"Allowed: {forms}.")

    @classmethod
    def no_list(cls, form: str, forms: str) -> WrongRegion:
        """The parts of the region are not a list."""
        return cls(f"'{form}' is not a list", hint=f"Allowed: {forms}.")

    @classmethod
    def too_large(cls, largest: float) -> WrongRegion:
        """A number of the region is larger than any value that is used."""
        hint = f"Give the values in another unit; those beyond {largest:g} count as not reported."
        return cls(f"the region has numbers beyond {largest:g}", hint=hint)

    @classmethod
    def too_small(cls, smallest: float) -> WrongRegion:
        """A number of the region is so close to 0 that no room can be measured with it."""
        hint = "Give 0, or the values in another unit."
        return cls(f"the region has numbers closer to 0 than {smallest:g}", hint=hint)

    @classmethod
    def empty(cls) -> WrongRegion:
        """No point lies inside the region."""
        hint = "Check the signs: a facet is normal . values <= below."
        return cls("no point lies inside all of the region's facets", hint=hint)

    @classmethod
    def box(cls, intervals: int, names: Sequence[str]) -> WrongRegion:
        """A box with more intervals, or fewer, than there are values."""
        what = f"the box has {intervals} intervals, but there are {len(names)} values ({', '.join(names)})"
        return cls(what, hint="Give [low, high] for each; null where there is no bound.")

    @classmethod
    def no_interval(cls, value: object) -> WrongRegion:
        """A side of a box is not an interval."""
        return cls(f"'{value}' is not an interval", hint="Give [low, high]; null for no bound.")

    @classmethod
    def falling(cls, low: object, high: object) -> WrongRegion:
        """An interval that contains no point."""
        return cls(f"{low} is not below {high}", hint="Give [low, high].")

    @classmethod
    def no_bound(cls) -> WrongRegion:
        """A box without a bound."""
        return cls("the box bounds nothing", hint="Give at least one bound.")

    @classmethod
    def polygon(cls, names: Sequence[str]) -> WrongRegion:
        """A polygon for a number of values other than two."""
        what = f"a polygon is a region of two values, but there are {len(names)} ({', '.join(names)})"
        return cls(what, hint="Give box or half_planes.")

    @classmethod
    def no_corner(cls, value: object) -> WrongRegion:
        """A corner is not a point."""
        return cls(f"'{value}' is not a corner", hint="Give [x, y].")

    @classmethod
    def no_polygon(cls) -> WrongRegion:
        """The corners do not go once around a convex polygon."""
        hint = "Give three or more corners in order, none of them on an edge."
        return cls("the corners are not those of a convex polygon, once around it", hint=hint)

    @classmethod
    def no_half_plane(cls, value: object) -> WrongRegion:
        """An entry does not have the form of a half-plane."""
        return cls(f"'{value}' is not a half-plane", hint="Give {normal: [...], below: N}.")

    @classmethod
    def no_normal(cls, value: object, names: Sequence[str]) -> WrongRegion:
        """The normal of a half-plane has the wrong length, or is zero."""
        return cls(f"'{value}' is not a normal", hint=f"Give a number for each of {', '.join(names)}, not all 0.")
