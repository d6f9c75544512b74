"""Lines of SciPy's integration that no Tensor can execute, and the lines instead.

Step sizes, error estimates and orders are Python numbers: the gradient is that of the steps as they
were taken. Times are Tensors if a tape follows a limit, else Python numbers.
"""

from typing import Any

_STEPS = {
    "np.dot(": "dot(",
    "np.abs(np.nextafter(t, self.direction * np.inf) - t)": "spacing(t, self.direction)",
    "h_abs = np.abs(h)\n": "h_abs = abs(number(h))\n",
}

EDITS: dict[str, dict[Any, Any]] = {
    "scipy.integrate._quadrature": {
        "simpson": {
            ("np.float64(np.diff(x, axis=axis))", ""): (  # not since SciPy 1.18
                "np.asarray(np.diff(x, axis=axis), dtype=np.float64)"
            )
        }
    },
    "scipy.integrate._ivp.base": {
        "np.asarray(fun(t, y), dtype=dtype)": "evaluated(fun, t, y, dtype)",
        "np.sign(t_bound - t0) if t_bound != t0 else 1": (
            "float(host.sign(number(t_bound) - number(t0))) or 1.0"
        ),
        "self.t_min = min(t, t_old)": "self.t_min = np.minimum(t, t_old)",
        "self.t_max = max(t, t_old)": "self.t_max = np.maximum(t, t_old)",
    },
    "scipy.integrate._ivp.common": {
        "select_initial_step": {
            "    if interval_length == 0.0:": "    if known(lambda: interval_length == 0.0):",
            """    if d0 < 1e-5 or d1 < 1e-5:
        h0 = 1e-6
    else:
        h0 = 0.01 * d0 / d1""": """
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = np.where(small, 1e-6, 0.01 * d0 / np.where(small, 1.0, d1))""",
            "h0 = min(h0, interval_length)": "h0 = np.minimum(h0, interval_length)",
            """    if d1 <= 1e-15 and d2 <= 1e-15:
        h1 = max(1e-6, h0 * 1e-3)
    else:
        h1 = (0.01 / max(d1, d2)) ** (1 / (order + 1))

    return min(100 * h0, h1, interval_length, max_step)""": """
    largest = np.maximum(d1, d2)
    tiny = largest <= 1e-15
    h1 = (0.01 / np.where(tiny, 1.0, largest)) ** (1 / (order + 1))
    h1 = np.where(tiny, np.maximum(1e-6, h0 * 1e-3), h1)
    return np.minimum(np.minimum(100 * h0, h1), np.minimum(interval_length, max_step))""",
        },
        "OdeSolution": {
            "ind = np.searchsorted(self.ts_sorted, t, side=self.side)": (
                "ind = int(on_host(np.searchsorted(self.ts_sorted, t, side=self.side)))"
            ),
            "segments = np.searchsorted(self.ts_sorted, t_sorted, side=self.side)": (
                "segments = on_host(np.searchsorted(self.ts_sorted, t_sorted, side=self.side))"
            ),
        },
    },
    "scipy.integrate._ivp.rk": {
        **_STEPS,
        "y_new, f_new = rk_step(": "y_new, f_new, self.K = rk_step(",
        "error_norm = self._estimate_error_norm(self.K, h, scale)": (
            "error_norm = number(unrecorded(self._estimate_error_norm, self.K, h, scale))"
        ),
        "if err5_norm_2 == 0 and err3_norm_2 == 0:": "if False:",
        "np.sqrt(denom * len(scale))": "np.sqrt(np.where(denom > 0, denom, 1.0) * len(scale))",
        "K = self.K_extended": "K = [*self.K]",
        "dy = dot(K[:s].T, a[:s]) * h\n            K[s] = self.fun(": (
            "dy = dot(np.stack(K).T, a[:s]) * h\n            K.append(self.fun("
        ),
        "self.K.T.dot(self.P)": "dot(self.K.T, self.P)",
        "self.y_old + dy)\n": "self.y_old + dy))\n",
        """        F = np.empty((dop853_coefficients.INTERPOLATOR_POWER, self.n),
                     dtype=self.y_old.dtype)
""": "        K = np.stack(K)\n",
        "F[0] = delta_y": "F = [delta_y]",
        "F[1] = h * f_old - delta_y": "F += [h * f_old - delta_y]",
        "F[2] = 2 * delta_y - h * (self.f + f_old)": "F += [2 * delta_y - h * (self.f + f_old)]",
        "F[3:] = h * dot(self.D, K)": "F += [*(h * dot(self.D, K))]",
    },
    "scipy.integrate._ivp.bdf": {
        **_STEPS,
        "delta_order = np.argmax(factors) - 1": (
            "delta_order = int(host.argmax(on_host(factors))) - 1"
        ),
        "safety * np.max(factors)": "safety * number(np.max(factors))",
        # a step that the limit has cut has a length with a gradient: a shorter one has none
        "h_abs *= factor\n                change_D(D, order, factor)": (
            "h_abs *= factor\n                change_D(D, order, factor * (number(h) / h))"
        ),
        # the last step ends at the limit, so its length has a gradient
        "self.h_abs * self.direction,": (
            "self.h_abs * self.direction * ((self.t - self.t_old) / number(self.t - self.t_old)),"
        ),
    },
    "scipy.integrate._ivp.radau": {
        **_STEPS,
        "TI.dot(Z0)": "dot(TI, Z0)",
        "F.T.dot(TI_REAL)": "dot(F.T, TI_REAL)",
        "F.T.dot(TI_COMPLEX)": "dot(F.T, TI_COMPLEX)",
        "Z = T.dot(W)": "Z = dot(T, W)",
        "Z.T.dot(E)": "dot(Z.T, E)",
        "h * C": "number(h) * C",  # of a guess
    },
    "scipy.integrate._ivp.ivp": {
        "t0, tf = map(float, t_span)": "t0, tf = map(limit, t_span)\n    y0 = np.asarray(y0)",
        "alt_segment=True if method in [BDF, LSODA] else False": (
            "alt_segment=issubclass(method, (BDF, LSODA))"
        ),
        "event_count = np.zeros(len(events))": "event_count = host.zeros(len(events))",
        "g = [event(t0, y0) for event in events]": (
            "events = [on_tensors(event) for event in events]\n"
            "        g = [event(t0, y0) for event in events]"
        ),
        "t_eval_i_new = np.searchsorted(t_eval, t, side='right')": (
            "t_eval_i_new = int(on_host(np.searchsorted(t_eval, t, side='right')))"
        ),
        "t_eval_i_new = np.searchsorted(t_eval, t, side='left')": (
            "t_eval_i_new = int(on_host(np.searchsorted(t_eval, t, side='left')))"
        ),
    },
}
