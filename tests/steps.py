"""Step functions that several test files trace."""

import gpugrad as gg


def loss_and_gradient(x, y):
    with gg.GradientTape() as tape:
        tape.watch(x)
        z = gg.sum(gg.tanh(x * y) * gg.softmax(x))
    return z, tape.gradient(z, x)


def masked_gradient(x):
    """At `x` = 0 the gradient is first NaN (0 times infinity), so a masked backward pass runs."""
    with gg.GradientTape() as tape:
        tape.watch(x)
        y = gg.sum(gg.where(x > 0, x * gg.log(x), 0))
    return tape.gradient(y, x)


def cross_entropy(logits, labels):
    return gg.mean(gg.sparse_softmax_cross_entropy(logits, labels))


def training_step(model, optimizer, loss=cross_entropy):
    """A training step: the loss of a model, its gradients and the optimizer update."""

    def step(x, y):
        with gg.GradientTape() as tape:
            value = loss(model(x), y)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
        return value

    return step
