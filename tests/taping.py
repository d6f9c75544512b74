"""A tape around one function."""

import gpugrad as gg


def taped(f, *xs, **flags):
    """A tape that has watched `xs` and recorded `f` of them, and the result."""
    with gg.GradientTape(**flags) as tape:
        tape.watch(xs)
        y = f(*xs)
    return tape, y


def tape_gradient(f, *xs, **options):
    """The gradient of `f` by its argument, or a list with that by each of several."""
    tape, y = taped(f, *xs)
    return tape.gradient(y, xs[0] if len(xs) == 1 else list(xs), **options)


def gradients(f, arrays, g):
    """The result of `f` of arrays, and its gradients by each, as arrays; zeros for none."""
    xs = [gg.asarray(a) for a in arrays]
    tape, y = taped(f, *xs)
    return y.numpy(), [d.numpy() for d in tape.gradient(y, xs, gg.asarray(g), "zero")]
