"""Lines of SciPy that no Tensor can execute, or that would be slow, and the lines instead."""

from typing import Any

EDITS: dict[str, dict[Any, Any]] = {
    "scipy.signal._short_time_fft": {
        "self.win.setflags(write=False)": "pass",  # always writable
        # the last axis of stacked parts is another than their second one
        "x = np.hstack((x, np.zeros(z_shape, dtype=x.dtype)))": (
            "x = np.concatenate((x, np.zeros(z_shape, dtype=x.dtype)), axis=-1)"
        ),
        # all parts at once: a write for each would be recorded, with the whole array
        """        for k_ in range(0, n1, self.hop):
            yield x1[..., k_:k_ + self.m_num]""": (
            "        return frames(x1, self.m_num, self.hop, p1 - p0)"
        ),
        """        S = np.zeros(S_shape, dtype=complex)
        for p_, x_ in enumerate(self._x_slices(x, k_offset, p0, p1, padding)):
            if detr is not None:
                x_ = detr(x_)
            S[..., :, p_] = self._fft_func(x_ * self.win.conj())""": """
        x_ = self._x_slices(x, k_offset, p0, p1, padding)
        if getattr(detr, "func", None) is detrend:
            x_ = detr(x_)
        elif detr is not None:
            x_ = np.stack([detr(x_[..., p_, :]) for p_ in range(p1 - p0)], axis=-2)
        S = np.moveaxis(self._fft_func(x_ * self.win.conj()).astype(complex), -2, -1)""",
        """        x = np.zeros(S.shape[:-2] + (n_pts,),
                     dtype=float if self.onesided_fft else complex)
        for q_ in range(q0, q1):
            xs = self._ifft_func(S[..., :, q_ - self.p_min]) * self.dual_win
            i0 = q_ * self.hop - self.m_num_mid
            i1 = min(i0 + self.m_num, n_pts+k0)
            j0, j1 = 0, i1 - i0
            if i0 < k0:  # xs sticks out to the left on x:
                j0 += k0 - i0
                i0 = k0
            x[..., i0-k0:i1-k0] += xs[..., j0:j1]""": """
        at = slice(q0 - self.p_min, q1 - self.p_min)
        if q0 < self.p_min:  # SciPy counts these parts from the end
            at = np.arange(at.start, at.stop)
        xs = self._ifft_func(np.moveaxis(S[..., at], -1, -2)) * self.dual_win
        x = overlap_added(xs, self.hop, k0 - (q0 * self.hop - self.m_num_mid), n_pts)
        x = x.astype(float if self.onesided_fft else complex)""",
    },
    "scipy.signal._spectral_py": {
        "_fft_helper": {
            """        result = np.lib.stride_tricks.sliding_window_view(
            x, window_shape=nperseg, axis=-1, writeable=True
        )
        result = result[..., 0::step, :]""": (
                "        result = frames(x, nperseg, step, (x.shape[-1] - nperseg) // step + 1)"
            )
        },
        "istft": {
            """    for ii in range(nseg):
        # Window the ifft
        x[..., ii*nstep:ii*nstep+nperseg] += xsubs[..., ii] * win
        norm[..., ii*nstep:ii*nstep+nperseg] += win**2""": """
    n = x.shape[-1]
    x = overlap_added(np.moveaxis(xsubs, -1, -2) * win, nstep, 0, n)
    norm = overlap_added(np.broadcast_to(win**2, (nseg, nperseg)), nstep, 0, n)"""
        },
    },
    "scipy.signal._signaltools": {
        "lfilter_zi": {
            # no gradient by a[0] where it is 1
            ("if a[0] != 1.0:", "if a[0] != 1:"): "if True:"
        },
        "residuez": {("if a[0] == 0:", ""): "if not holds(a[0] != 0):"},
        ("(sum_a := xp.sum(a)) == 0:", ""): "not holds((sum_a := xp.sum(a)) != 0):",
        "lfiltic": {"if a[0] != 1.:": "if True:"},
        "sosfilt": {
            # no writes to arguments
            "x = np.array(x, dtype, order='C')  # make a copy, can modify in place": (
                "x = np.asarray(x, dtype)"
            ),
            "_sosfilt(sos, x, zi)\n": "x, zi = _sosfilt(sos, x, zi)\n",
        },
        "correlate2d": {
            # the method keeps NumPy's bools, but not ours
            "_convolve2d(in1, in2.conj(), 0": (
                "_convolve2d(in1, in2.conj() if in2.dtype.kind == 'c' else in2, 0"
            )
        },
        "_filtfilt_gust": {
            # NumPy drops the imaginary part in this assignment; a Tensor would refuse it
            "Obs[:, 0] = lfilter(b, a, np.zeros(m), zi=zi)[0]": (
                "Obs[:, 0] = np.real(lfilter(b, a, np.zeros(m), zi=zi)[0])"
            )
        },
    },
    "scipy.signal._ltisys": {  # all samples at once
        "lsim": {
            """        for i in range(1, n_steps):
            xout[i] = xout[i-1] @ expAT_dt
""": "        xout = states(expAT_dt, xout[0], np.zeros((n_steps - 1, n_states)))\n",
            """        for i in range(1, n_steps):
            xout[i] = xout[i-1] @ Ad + U[i-1] @ Bd
""": "        xout = states(Ad, xout[0], U[:-1] @ Bd)\n",
            """        for i in range(1, n_steps):
            xout[i] = xout[i-1] @ Ad + U[i-1] @ Bd0 + U[i] @ Bd1
""": "        xout = states(Ad, xout[0], U[:-1] @ Bd0 + U[1:] @ Bd1)\n",
        },
        "dlsim": {
            """    for i in range(0, out_samples - 1):
        xout[i+1, :] = (np.dot(system.A, xout[i, :]) +
                        np.dot(system.B, u_dt[i, :]))
        yout[i, :] = (np.dot(system.C, xout[i, :]) +
                      np.dot(system.D, u_dt[i, :]))
""": """    a, b, c, d = (np.asarray(m).T for m in (system.A, system.B, system.C, system.D))
    xout = states(a, xout[0], u_dt[:out_samples - 1] @ b)
    yout = xout @ c + u_dt[:out_samples] @ d
""",
            """    # Last point
    yout[out_samples-1, :] = (np.dot(system.C, xout[out_samples-1, :]) +
                              np.dot(system.D, u_dt[out_samples-1, :]))
""": "",
        },
    },
    "scipy.signal._filter_design": {
        "_validate_sos": {
            "if not xp.all(sos[:, 3] == 1):": "if not holds(xp.all(sos[:, 3] == 1)):"  # traces
        },
        "bilinear": {
            # a Tensor times a polynomial
            "b_ * zp1**(N-q) * zm1**q": "zp1**(N-q) * zm1**q * b_",
            "a_ * zp1**(N-p) * zm1**p": "zp1**(N-p) * zm1**p * a_",
        },
    },
}
