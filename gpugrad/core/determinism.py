"""Whether a GPU may add in any order."""

from __future__ import annotations

__all__ = ["deterministic", "set_deterministic"]

_chosen = [False]  # one element, which all threads read and one assignment changes


def set_deterministic(on: bool = True) -> None:
    """Say for all threads whether results on a GPU must be the same to the last bit each time.

    Gradients of `take`, `gather`, embeddings and indexing add up what was read from one place,
    and SGD moves rows that a gradient names twice twice. By default a GPU adds with atomics, in
    the order in which they happen to arrive, and the last digits of a float differ from run to
    run. If on, the indices are sorted first, and each sum is taken in one order, which depends on
    the indices alone; that takes longer. Integers and the CPU give the same results each time
    either way.

    Args:
        on: whether they must.

    >>> gg.set_deterministic()
    >>> gg.deterministic()
    True
    >>> gg.set_deterministic(False)
    """
    _chosen[0] = bool(on)


def deterministic() -> bool:
    """Whether results on a GPU must be the same each time; see `set_deterministic`.

    >>> gg.deterministic()
    False
    """
    return _chosen[0]
