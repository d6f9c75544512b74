"""Steps that several tests trace."""

import gpugrad as gg


def loss_and_gradient(x, y):
    with gg.GradientTape() as tape:
        tape.watch(x)
        z = gg.sum(gg.tanh(x * y) * gg.softmax(x))
    return z, tape.gradient(z, x)


def masked_gradient(x):
    """0 where `x` is 0, beside an infinite factor, so a first gradient comes out NaN."""
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = gg.sum(gg.where(x > 0, x * gg.log(x), 0))
    return tape.gradient(y, x)


def cross_entropy(logits, labels):
    return gg.mean(gg.sparse_softmax_cross_entropy(logits, labels))


def training_step(model, optimizer, loss=cross_entropy):
    """A step that fits a model to its targets."""

    def step(x, y):
        with gg.GradientTape() as tape:
            value = loss(model(x), y)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
        return value

    return step
