"""Random update rules, for the readings of rules."""

import numpy as np

NAMES = ("a", "b", "c")


def operations(xp, s, x, y, number):
    return [
        lambda: x + y, lambda: x - y, lambda: x * y, lambda: x / (xp.absolute(y) + 0.5),
        lambda: number * x, lambda: x + number, lambda: number - x, lambda: x / 3.0,
        lambda: 1.0 / (xp.absolute(x) + 1.0), lambda: xp.sqrt(xp.absolute(x) * 2.0),
        lambda: xp.square(number * x) * 0.1, lambda: xp.sign(s.b * x),
        lambda: xp.maximum(x, number * y), lambda: xp.maximum(s.c * x, 0.0), lambda: -x,
    ]  # fmt: skip


def random_formula(seed, n_slots):
    """A formula of random operations; the same one whenever it is called."""

    def formula(xp, s, p, g, *slots):
        rng = np.random.default_rng(seed)
        raw = [p, g, *slots]
        new = []
        for m in slots:  # averages that decay, are compared, or neither
            kind = rng.integers(4)
            if kind == 0:
                new.append(s.a * m + s.b * g)
            elif kind == 1:
                new.append(s.c * xp.square(g) + m * s.b)
            elif kind == 2:
                new.append(xp.maximum(s.a * m, xp.absolute(g) + 0.1))
            else:
                new.append(m + xp.absolute(p))
        values = [*raw, *new] if rng.integers(2) else [p, g, *new]
        for _ in range(rng.integers(1, 9)):
            x, y = (values[k] for k in rng.integers(len(values), size=2))
            number = [s.a, s.b, s.c, 2.0, -0.5, s.a * s.b, 1 - s.c][rng.integers(7)]
            values.append(operations(xp, s, x, y, number)[rng.integers(15)]())
        return s.c * p + s.a * values[-1], *new

    return formula
