"""Lines of SciPy's interpolation that no Tensor can execute, and the lines instead."""

from typing import Any

_POINTWISE = """        # the rest of the dimensions have to be on a per point-in-xi basis
"""

_CONTIGUOUS = "def _ensure_c_contiguous(self):\n"
_ANY_LAYOUT = {_CONTIGUOUS: f"{_CONTIGUOUS}        return\n"}

EDITS: dict[str, dict[Any, Any]] = {
    "scipy.interpolate._cubic": {
        "from . import PPoly": "from ._interpolate import PPoly",
        "PchipInterpolator": {
            # masks instead of indices, whose number depends on values
            """        d[mask] = 0.
        d[mmm] = 3.*m0[mmm]

        return d""": "        return xp.where(mask, 0., xp.where(mmm, 3.*m0, d))",
            "whmean = (w1/mk[:-1] + w2/mk[1:]) / (w1 + w2)": """
            one, two = (np.where(condition, 1., m) for m in (mk[:-1], mk[1:]))
            whmean = (w1/one + w2/two) / (w1 + w2)""",
            """        dk = np.zeros_like(y)
        dk[1:-1][condition] = 0.0
        dk[1:-1][~condition] = 1.0 / whmean[~condition]
""": "        inner = np.where(condition, 0.0, 1.0 / whmean)\n",
            "dk[0] = PchipInterpolator": "first = PchipInterpolator",
            "dk[-1] = PchipInterpolator": "last = PchipInterpolator",
            """[-1], mk[-2], xp=xp)
""": """[-1], mk[-2], xp=xp)
        dk = np.concatenate([first[None], inner, last[None]])
""",
        },
        "Akima1DInterpolator": {
            "ind = xp.nonzero(f12 > break_mult * mmax)": "ok = f12 > break_mult * mmax",
            "            x_ind, y_ind = ind[0], ind[1:]\n": "",
            """            t[ind] = m[(x_ind + 1,) + y_ind] + (
                (f2[ind] / f12[ind])
                * (m[(x_ind + 2,) + y_ind] - m[(x_ind + 1,) + y_ind])
            )""": (
                "            share = f2 / xp.where(ok, f12, 1.)\n"
                "            t = xp.where(ok, m[1:-2] + share * (m[2:-1] - m[1:-2]), t)"
            ),
            """            m = xp.empty((x.shape[0] + 3, ) + y.shape[1:])
""": "",
            """            m[2:-2, ...] = xp.diff(y, axis=0) / dx
""": """            m = xp.diff(y, axis=0) / dx
            left, right = 2. * m[0] - m[1], 2. * m[-1] - m[-2]
            ends = [np.stack(e) for e in ([2. * left - m[0], left], [right, 2. * right - m[-1]])]
            m = np.concatenate([ends[0], m, ends[1]])
""",
            "            m[1, ...] = 2. * m[2, ...] - m[3, ...]\n": "",
            "            m[0, ...] = 2. * m[1, ...] - m[2, ...]\n": "",
            "            m[-2, ...] = 2. * m[-3, ...] - m[-4, ...]\n": "",
            "            m[-1, ...] = 2. * m[-2, ...] - m[-3, ...]\n": "",
        },
    },
    "scipy.interpolate._interpolate": {
        "_PPolyBase": {
            "        self._evaluate(x, nu, extrapolate, out)\n": (
                "        out = self._evaluate(x, nu, extrapolate)\n"
            )
        },
        "NdPPoly _PPolyBase": _ANY_LAYOUT,
        "NdPPoly": {
            "not self.c.flags.c_contiguous": "False",
            "_ppoly.fix_continuity(c2.reshape(c2.shape[0], c2.shape[1], -1)": "c2 = continuous(c2",
            """        _ppoly.evaluate_nd(self.c.reshape(dim1, dim2, dim3),
                           self.x,
                           ks,
                           x,
                           nu,
                           bool(extrapolate),
                           out)""": """
        flat = self.c.reshape(dim1, dim2, dim3)
        out = evaluate_nd(flat, self.x, ks, x, nu, bool(extrapolate))""",
        },
        "PPoly _PPoly": {
            "_ppoly.fix_continuity(c.reshape(c.shape[0], c.shape[1], -1)": "c = continuous(c"
        },
        "interp1d": {
            "if mask.any():": "if known(lambda: mask.any()):",
            "if np.isnan(self._y).any():": "if known(lambda: np.isnan(self._y).any()):",
            """                y_new[below_bounds] = self._fill_value_below
                y_new[above_bounds] = self._fill_value_above""": """
                if known(lambda: not (below_bounds.any() or above_bounds.any())):
                    return y_new
                y_new = y_new.reshape(len(x_new), -1)
                low, high = self._fill_value_below, self._fill_value_above
                y_new = np.where(below_bounds[:, None], low.astype(y_new.dtype), y_new)
                y_new = np.where(above_bounds[:, None], high.astype(y_new.dtype), y_new)""",
        },
    },
    "scipy.interpolate._bsplines": {
        "BSpline _BSpline": {
            (
                "is_complex = self._c.dtype.kind == 'c'",
                "is_complex = self.c.dtype.kind == 'c'",
            ): "is_complex = False",
            **_ANY_LAYOUT,
            "        if b < a:\n": "        if known(lambda: b < a):\n",
            "a = max(a, ": "a = np.maximum(a, ",
            "b = min(b, ": "b = np.minimum(b, ",
        },
        "make_interp_spline": {
            "\n    kl = ku = k\n": """
    ends = (deriv_l_ords, deriv_l_vals), (deriv_r_ords, deriv_r_vals)
    c = interpolation_coefficients(x, y, t, k, *ends)
    return BSpline.construct_fast(t, c, k, axis=axis)
    kl = ku = k
""",
            "        return _make_periodic_spline(x, y, t, k, axis, xp=xp)": """
        c = periodic_coefficients(x, y, t, k)
        return BSpline.construct_fast(t, c, k, extrapolate='periodic', axis=axis)""",
        },
        "make_lsq_spline": {
            "    # complex y: view as float, preserve the length\n": """
    c = least_squares(x, y, t, k, w, method)
    return BSpline.construct_fast(t, c, k, axis=axis)
"""
        },
    },
    "scipy.interpolate._fitpack_impl": {
        "splder": {
            "dt = t[k+1:-1] - t[1:-k-1]\n": """dt = t[k+1:-1] - t[1:-k-1]
                if known(lambda: np.any(dt == 0)):
                    raise FloatingPointError
"""
        }
    },
    "scipy.interpolate._rgi": {
        "_check_points": {
            "if not np.all(p[1:] > p[:-1]):": "if known(lambda: not np.all(p[1:] > p[:-1])):"
        },
        "RegularGridInterpolator": {
            '        if method == "linear":\n': """
        result = linear(self, xi) if method == "linear" else None
        if result is not None:
            pass
        elif method == "linear":
""",
            "if (ndim == 2 and hasattr(self._values, 'dtype') and": "if (False and",
            "            result[out_of_bounds] = self.fill_value": """
            out_of_bounds = out_of_bounds.reshape((-1,) + (1,) * (result.ndim - 1))
            result = np.where(out_of_bounds, self.fill_value, result)""",
            """        if np.any(nans):
            result[nans] = np.nan
""": """        nans = nans.reshape((-1,) + (1,) * (result.ndim - 1))
        if not known(lambda: not np.any(nans)):
            result = np.where(nans, np.nan, result)
""",
            _POINTWISE: """        self._legacy_pchip = method == 'pchip'
        return fold(self, first_values, xi, PchipInterpolator, make_interp_spline, k)
""",
            "xi = np.asarray(xi, dtype=float)": "xi = np.asarray(xi, dtype=float, order='F')",
            "out_of_bounds += x < grid[0]": "out_of_bounds = out_of_bounds | (x < grid[0])",
            "out_of_bounds += x > grid[-1]": "out_of_bounds = out_of_bounds | (x > grid[-1])",
        },
        "interpn": {
            "result[idx_valid] = interp.ev(xi[idx_valid, 0], xi[idx_valid, 1])": (
                "result[idx_valid] = np.asarray(interp.ev(*splinef2d_points(xi[idx_valid])))"
            )
        },
    },
    "scipy.interpolate._ndbspline": {
        "make_ndbspl": {
            """    xvals = np.asarray([xv for xv in itertools.product(*points)], dtype=float)
""": """    coef = values
    for d, points_d in enumerate(points):
        made = make_interp_spline(points_d, coef, k[d], axis=d)
        coef = np.moveaxis(made.c, 0, d)
    return NdBSpline(t, coef, k)
"""
        },
        "_preprocess_inputs": {
            "    k = np.asarray([operator.index(ki) for ki in k], dtype=np.int64)\n": (
                "    k = [operator.index(ki) for ki in k]\n"
            ),
            "    shape = tuple(kd + 1 for kd in k)\n": """
    t_tpl = tuple(map(np.asarray, t_tpl))
    return k, None, (t_tpl, [len(t) for t in t_tpl])
""",
        },
        "NdBSpline": {
            "ndim = self._t.shape[0]": "ndim = len(self._t)",
            "self._asarray(self._t[d, :self._len_t[d]]) for d in range(self._t.shape[0])": (
                "self._asarray(t) for t in self._t"
            ),
            "t_new = [self._t[d, :self._len_t[d]] for d in range(self._t.shape[0])]": (
                "t_new = list(self.t)"
            ),
        },
        "from ._bsplines import _not_a_knot, BSpline": (
            "from ._bsplines import _not_a_knot, BSpline, make_interp_spline"
        ),
    },
    "scipy.interpolate._polyint": {
        "KroghInterpolator": {
            "        c = np.zeros((self.n+1, self.r), dtype=self.dtype)\n": """
        if known(lambda: np.unique(xi).size == self.n):
            self.c = divided_differences(xi, self.yi)
            return
        c = np.zeros((self.n+1, self.r), dtype=self.dtype)
""",
            "and xi[k-s] == xi[k]:": "and (s == 0 or known(lambda: xi[k-s] == xi[k])):",
        },
        "BarycentricInterpolator": {
            """            self.wi = np.zeros(self.n)

            for i in range(self.n):
                dist = self._inv_capacity * (self.xi[i] - self.xi[permute])
                dist[inv_permute[i]] = 1.0
                prod = np.prod(dist)
                if prod == 0.0:
                    raise ValueError("Interpolation points xi must be"
                                     " distinct.")
                self.wi[i] = 1.0 / prod""": """
            prod = barycentric_weights(self.xi, self._inv_capacity, permute)
            if np.any(prod == 0.0):
                raise ValueError("Interpolation points xi must be distinct.")
            self.wi = 1.0 / prod"""
        },
    },
    "scipy.interpolate._rbfinterp_xp": {
        "xp.linalg.vector_norm(x[None, :, :] - x[:, None, :], axis=-1)": "squared_distances(x, x)",
        """xp.linalg.vector_norm(
                    xeps[:, None, :] - yeps[None, :, :], axis=-1
                )""": "squared_distances(xeps, yeps)",
    },
    "scipy.interpolate._rbfinterp": {
        """        if not is_numpy(xp):
                raise NotImplementedError""": """        if False:
                raise NotImplementedError""",
        "d = d.view(float)": "pass",
        "out = out.view(self.d_dtype)": "pass",
        "self._tree = KDTree(y)": "self._tree = KDTree(on_host(y))",
        "self._tree.query(x, self.neighbors)": "self._tree.query(on_host(x), self.neighbors)",
        "out = np.empty((nx, self.d.shape[1]), dtype=float)": (
            "out = np.empty((nx, self.d.shape[1]), dtype=self.d_dtype)"
        ),
        "out = self._xp.empty((nx, self.d.shape[1]), dtype=self._xp.float64)": "chunks = []",
        "out = xpx.at(out, (slice(i, i + chunksize), slice(None,))).set(chunk)": (
            "chunks.append(chunk)\n            out = np.concatenate(chunks)"
        ),
    },
}
