"""Every optimizer with an elementwise rule, and the formulas of the papers in plain NumPy."""

import math

import numpy as np

from gpugrad import optim


def sgd(s, p, g, t, rate, momentum=0.0, nesterov=False, weight_decay=0.0):
    g = g + weight_decay * p
    s["v"] = momentum * s.get("v", 0.0) + g
    return p - rate * (g + momentum * s["v"] if nesterov else s["v"])


def adam(s, p, g, t, rate, beta_1=0.9, beta_2=0.999, epsilon=1e-8, amsgrad=False, weight_decay=0.0):
    s["m"] = beta_1 * s.get("m", 0.0) + (1 - beta_1) * g
    s["v"] = beta_2 * s.get("v", 0.0) + (1 - beta_2) * g**2
    s["max"] = np.maximum(s.get("max", 0.0), s["v"])
    v = (s["max"] if amsgrad else s["v"]) / (1 - beta_2**t)
    p = p - rate * weight_decay * p
    return p - rate * s["m"] / (1 - beta_1**t) / (np.sqrt(v) + epsilon)


def nadam(s, p, g, t, rate, beta_1=0.9, beta_2=0.999, epsilon=1e-8, weight_decay=0.0, psi=0.004):
    g = g + weight_decay * p
    mu = [beta_1 * (1 - 0.5 * 0.96 ** (k * psi)) for k in (t, t + 1)]
    s["product"] = s.get("product", 1.0) * mu[0]
    s["m"] = beta_1 * s.get("m", 0.0) + (1 - beta_1) * g
    s["v"] = beta_2 * s.get("v", 0.0) + (1 - beta_2) * g**2
    m = mu[1] * s["m"] / (1 - s["product"] * mu[1]) + (1 - mu[0]) * g / (1 - s["product"])
    return p - rate * m / (np.sqrt(s["v"] / (1 - beta_2**t)) + epsilon)


def radam(s, p, g, t, rate, beta_1=0.9, beta_2=0.999, epsilon=1e-8, weight_decay=0.0):
    g = g + weight_decay * p
    s["m"] = beta_1 * s.get("m", 0.0) + (1 - beta_1) * g
    s["v"] = beta_2 * s.get("v", 0.0) + (1 - beta_2) * g**2
    m, inf = s["m"] / (1 - beta_1**t), 2 / (1 - beta_2) - 1
    rho = inf - 2 * t * beta_2**t / (1 - beta_2**t)
    if rho <= 5:
        return p - rate * m
    r = math.sqrt((rho - 4) * (rho - 2) * inf / ((inf - 4) * (inf - 2) * rho))
    return p - rate * m * r * math.sqrt(1 - beta_2**t) / (np.sqrt(s["v"]) + epsilon)


def adamax(s, p, g, t, rate, beta_1=0.9, beta_2=0.999, epsilon=1e-8, weight_decay=0.0):
    g = g + weight_decay * p
    s["m"] = beta_1 * s.get("m", 0.0) + (1 - beta_1) * g
    s["u"] = np.maximum(beta_2 * s.get("u", 0.0), np.abs(g) + epsilon)
    return p - rate / (1 - beta_1**t) * s["m"] / s["u"]


def rmsprop(
    s, p, g, t, rate, rho=0.9, momentum=0.0, epsilon=1e-7, centered=False, weight_decay=0.0
):
    g = g + weight_decay * p
    s["v"] = rho * s.get("v", 0.0) + (1 - rho) * g**2
    s["mean"] = rho * s.get("mean", 0.0) + (1 - rho) * g
    v = s["v"] - s["mean"] ** 2 if centered else s["v"]
    s["b"] = momentum * s.get("b", 0.0) + g / (np.sqrt(np.maximum(v, 0)) + epsilon)
    return p - rate * s["b"]


def adagrad(s, p, g, t, rate, initial_accumulator_value=0.0, epsilon=1e-10,
            learning_rate_decay=0.0, weight_decay=0.0):  # fmt: skip
    g = g + weight_decay * p
    s["total"] = s.get("total", initial_accumulator_value) + g**2
    return p - rate / (1 + (t - 1) * learning_rate_decay) * g / (np.sqrt(s["total"]) + epsilon)


def adadelta(s, p, g, t, rate, rho=0.9, epsilon=1e-6, weight_decay=0.0):
    g = g + weight_decay * p
    s["v"] = rho * s.get("v", 0.0) + (1 - rho) * g**2
    delta = np.sqrt(s.get("u", 0.0) + epsilon) / np.sqrt(s["v"] + epsilon) * g
    s["u"] = rho * s.get("u", 0.0) + (1 - rho) * delta**2
    return p - rate * delta


def lion(s, p, g, t, rate, beta_1=0.9, beta_2=0.99, weight_decay=0.0):
    m = s.get("m", 0.0)
    s["m"] = beta_2 * m + (1 - beta_2) * g
    return p - rate * (np.sign(beta_1 * m + (1 - beta_1) * g) + weight_decay * p)


def lamb(s, p, g, t, rate, beta_1=0.9, beta_2=0.999, epsilon=1e-6, weight_decay=0.01):
    s["m"] = beta_1 * s.get("m", 0.0) + (1 - beta_1) * g
    s["v"] = beta_2 * s.get("v", 0.0) + (1 - beta_2) * g**2
    u = s["m"] / (1 - beta_1**t) / (np.sqrt(s["v"] / (1 - beta_2**t)) + epsilon) + weight_decay * p
    norms = np.linalg.norm(p), np.linalg.norm(u)
    return p - rate * (norms[0] / norms[1] if all(norms) else 1) * u


def lars(s, p, g, t, rate, momentum=0.9, weight_decay=0.0, trust_coefficient=0.001, epsilon=1e-9):
    norms = np.linalg.norm(p), np.linalg.norm(g)
    trust = trust_coefficient * norms[0] / (norms[1] + weight_decay * norms[0] + epsilon)
    trust = trust if all(norms) else 1
    s["v"] = momentum * s.get("v", 0.0) + rate * trust * (g + weight_decay * p)
    return p - s["v"]


CASES = {
    "sgd": (optim.SGD, sgd, {}),
    "sgd-decay": (optim.SGD, sgd, {"weight_decay": 0.1}),
    "momentum": (optim.SGD, sgd, {"momentum": 0.9}),
    "nesterov": (optim.SGD, sgd, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "adam": (optim.Adam, adam, {}),
    "amsgrad": (optim.Adam, adam, {"amsgrad": True, "beta_2": 0.9}),
    "adamw": (optim.AdamW, adam, {"weight_decay": 0.1}),
    "nadam": (optim.NAdam, nadam, {}),
    "nadam-decay": (optim.NAdam, nadam, {"weight_decay": 0.1}),
    "radam": (optim.RAdam, radam, {"weight_decay": 0.1}),
    "radam-short": (optim.RAdam, radam, {"beta_2": 0.9}),
    "adamax": (optim.Adamax, adamax, {"weight_decay": 0.1}),
    "rmsprop": (optim.RMSprop, rmsprop, {}),
    "rmsprop-all": (
        optim.RMSprop, rmsprop, {"momentum": 0.9, "centered": True, "weight_decay": 0.1},
    ),
    "adagrad": (optim.Adagrad, adagrad, {}),
    "adagrad-all": (
        optim.Adagrad, adagrad,
        {"initial_accumulator_value": 0.1, "learning_rate_decay": 0.1, "weight_decay": 0.1},
    ),
    "adadelta": (optim.Adadelta, adadelta, {}),
    "adadelta-decay": (optim.Adadelta, adadelta, {"weight_decay": 0.1, "rho": 0.8}),
    "lion": (optim.Lion, lion, {"weight_decay": 0.1}),
    "lamb": (optim.LAMB, lamb, {}),
    "lars": (optim.LARS, lars, {"weight_decay": 0.1, "trust_coefficient": 0.1}),
}  # fmt: skip
"""By name: the class, the function of one step in NumPy, and settings of both."""


def adafactor(s, p, g, t, rate, weight_decay=0.0):
    """Of a matrix in float64, with the defaults of torch."""
    beta, eps = 1 - t**-0.8, np.finfo(np.float64).eps
    rms = lambda x: np.sqrt(np.mean(x**2))  # noqa: E731
    rate_now = min(rate, 1 / np.sqrt(t)) * max(0.001, rms(p))
    s["R"] = beta * s.get("R", 0.0) + (1 - beta) * np.mean(g**2, -1)
    s["C"] = beta * s.get("C", 0.0) + (1 - beta) * np.mean(g**2, -2)
    v = np.outer(s["R"], s["C"]) / max(np.mean(s["R"]), eps)
    u = g / np.sqrt(np.maximum(v, eps**2))
    return (1 - rate * weight_decay) * p - rate_now * u / max(1, rms(u))


def muon(s, p, g, t, rate, momentum=0.95, nesterov=True, weight_decay=0.1):
    """Of a matrix."""
    s["m"] = momentum * s.get("m", 0.0) + (1 - momentum) * g
    x = momentum * s["m"] + (1 - momentum) * g if nesterov else s["m"]
    x = x / np.linalg.norm(x)
    for _ in range(5):  # by the other Gram matrix than the shorter one, which is the same
        x = 3.4445 * x - 4.7750 * x @ x.T @ x + 2.0315 * x @ x.T @ x @ x.T @ x
    return p - rate * (weight_decay * p + np.sqrt(max(1, p.shape[0] / p.shape[1])) * x)


MATRICES = {
    "adafactor": (optim.Adafactor, adafactor, {}),
    "adafactor-decay": (optim.Adafactor, adafactor, {"weight_decay": 0.1}),
    "muon": (optim.Muon, muon, {}),
    "muon-plain": (optim.Muon, muon, {"nesterov": False, "weight_decay": 0.0}),
}
"""The same for optimizers of matrices."""


def make(name, rate=0.1, **options):
    """The optimizer of that name."""
    kind, _, settings = (CASES | MATRICES)[name]
    return kind(rate, **settings, **options)


class Written:
    """The formula of that name, for one Variable."""

    def __init__(self, name, p, **changes):
        _, self.formula, settings = (CASES | MATRICES)[name]
        self.p, self.state, self.t, self.settings = np.array(p), {}, 0, settings | changes

    def step(self, g, rate=0.1):
        """Take a step."""
        self.t += 1
        self.p = self.formula(self.state, self.p, g, self.t, rate, **self.settings)
