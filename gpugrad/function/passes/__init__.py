"""Passes: functions from a Program to a Program that does the same, each in a file of its own."""

from gpugrad.function.passes.common import common_subexpressions
from gpugrad.function.passes.constants import fold_constants
from gpugrad.function.passes.dead import remove_dead
from gpugrad.function.passes.identities import simplify
from gpugrad.function.passes.transposes import name_transposes

__all__ = [
    "PASSES",
    "common_subexpressions",
    "fold_constants",
    "name_transposes",
    "remove_dead",
    "simplify",
]

PASSES = {
    "constants": fold_constants,
    "transposes": name_transposes,
    "identities": simplify,
    "common": common_subexpressions,
    "dead": remove_dead,
}
"""By name, in the order in which they run."""
