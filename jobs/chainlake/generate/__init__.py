"""Seeded landing files of any size for the three shipped sources, with planted truth, for tests and benchmarks."""

from chainlake.generate.run import Recipe, generate

__all__ = ["Recipe", "generate"]
