"""Step functions that several test files trace."""

from taping import tape_gradient, taped

import gpugrad as gg


def loss_and_gradient(x, y):
    tape, z = taped(lambda x: gg.sum(gg.tanh(x * y) * gg.softmax(x)), x)
    return z, tape.gradient(z, x)


def masked_gradient(x):
    """At `x` = 0 the gradient is first NaN (0 times infinity), so a masked backward pass runs."""
    return tape_gradient(lambda x: gg.sum(gg.where(x > 0, x * gg.log(x), 0)), x)


def cross_entropy(logits, labels):
    return gg.mean(gg.sparse_softmax_cross_entropy(logits, labels))


def training_step(model, optimizer, loss=cross_entropy):
    """A training step: the loss of a model, its gradients and the optimizer update."""

    def step(x, y):
        return optimizer.minimize(lambda: loss(model(x), y), model.trainable_variables)

    return step
