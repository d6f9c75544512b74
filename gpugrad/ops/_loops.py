"""A bound for the parameters that are numbers of loops."""

import operator

from gpugrad.errors import ArgumentError


def check_order(name, parameter, value, low, high):
    """A number of loops as an int; ArgumentError if it is not from `low` to `high`."""
    value = operator.index(value)
    if not low <= value <= high:
        raise ArgumentError(f"{name}: {parameter}={value} must be from {low} to {high}.")
    return value
