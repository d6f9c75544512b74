// Complex numbers for generated kernels: NVRTC has no <complex>, and CuPy's header is not available
// to other compilers. Branch cuts are NumPy's, including signed zeros where the formulas allow.
#ifndef GPUGRAD_COMPLEX
#define GPUGRAD_COMPLEX

template <class T> struct alignas(2 * sizeof(T)) Complex {
  T re, im;
  Complex() = default;
  __device__ Complex(T re, T im = 0) : re(re), im(im) {}
  template <class U> __device__ explicit Complex(const Complex<U>& z) : re(T(z.re)), im(T(z.im)) {}
  __device__ explicit operator bool() const { return re != 0 || im != 0; }
  __device__ Complex& operator+=(const Complex& w) {
    re += w.re, im += w.im;
    return *this;
  }
};

#define COMPLEX(name) template <class T> __device__ inline Complex<T> name(Complex<T> z)
#define COMPLEX_PAIR(name) \
  template <class T> __device__ inline Complex<T> name(Complex<T> z, Complex<T> w)

COMPLEX_PAIR(operator+) { return Complex<T>(z.re + w.re, z.im + w.im); }
COMPLEX_PAIR(operator-) { return Complex<T>(z.re - w.re, z.im - w.im); }
COMPLEX_PAIR(operator*) {
  return Complex<T>(z.re * w.re - z.im * w.im, z.re * w.im + z.im * w.re);
}
COMPLEX_PAIR(operator/) {  // Smith's: without overflow of |w|^2
  if (fabs(w.re) >= fabs(w.im)) {
    if (w.re == 0 && w.im == 0) return Complex<T>(z.re / fabs(w.re), z.im / fabs(w.re));
    T r = w.im / w.re, d = 1 / (w.re + w.im * r);
    return Complex<T>((z.re + z.im * r) * d, (z.im - z.re * r) * d);
  }
  T r = w.re / w.im, d = 1 / (w.im + w.re * r);
  return Complex<T>((z.re * r + z.im) * d, (z.im * r - z.re) * d);
}
COMPLEX(operator-) { return Complex<T>(-z.re, -z.im); }
template <class T> __device__ inline bool operator==(Complex<T> z, Complex<T> w) {
  return z.re == w.re && z.im == w.im;
}
template <class T> __device__ inline bool operator!=(Complex<T> z, Complex<T> w) {
  return !(z == w);
}
template <class T> __device__ inline Complex<T> __shfl_xor_sync(unsigned mask, Complex<T> z, int by) {
  T re = __shfl_xor_sync(mask, z.re, by);
  return Complex<T>(re, __shfl_xor_sync(mask, z.im, by));
}

COMPLEX(conj) { return Complex<T>(z.re, -z.im); }
COMPLEX(times_i) { return Complex<T>(-z.im, z.re); }
COMPLEX(over_i) { return Complex<T>(z.im, -z.re); }
template <class T> __device__ inline T abs(Complex<T> z) { return hypot(z.re, z.im); }
template <class T> __device__ inline bool is_finite(Complex<T> z) {
  return z.re - z.re == 0 && z.im - z.im == 0;
}
template <class T> __device__ inline bool is_infinite(Complex<T> z) {
  return fabs(z.re) == infinity<T>() || fabs(z.im) == infinity<T>();
}
COMPLEX(sign) {
  T size = abs(z);
  return size == 0 ? Complex<T>(0) : Complex<T>(z.re / size, z.im / size);
}

COMPLEX(exp) {
  T size = exp(z.re);
  return z.im == 0 ? Complex<T>(size, z.im) : Complex<T>(size * cos(z.im), size * sin(z.im));
}
COMPLEX(expm1) {
  T s = sin(z.im / 2);
  return Complex<T>(expm1(z.re) * cos(z.im) - 2 * s * s, exp(z.re) * sin(z.im));
}
// log |z|, computed from |z| - 1 where |z| is near 1
template <class T> __device__ inline T log_abs(T re, T im) {
  T x = fabs(re), y = fabs(im), large = x > y ? x : y, small = x > y ? y : x;
  if (large > T(0.5) && large < T(1.5)) return log1p((large - 1) * (large + 1) + small * small) / 2;
  return log(hypot(re, im));
}
COMPLEX(log) { return Complex<T>(log_abs(z.re, z.im), atan2(z.im, z.re)); }
COMPLEX(log2) {
  Complex<T> w = log(z);
  return Complex<T>(w.re * T(1.4426950408889634), w.im * T(1.4426950408889634));
}
COMPLEX(log10) {
  Complex<T> w = log(z);
  return Complex<T>(w.re * T(0.4342944819032518), w.im * T(0.4342944819032518));
}
COMPLEX(log1p) {
  T x = z.re, y = z.im;
  if (fabs(x) < T(0.5) && fabs(y) < 1) return Complex<T>(log1p(x * (2 + x) + y * y) / 2, atan2(y, 1 + x));
  return Complex<T>(log_abs(1 + x, y), atan2(y, 1 + x));
}
COMPLEX(sqrt) {
  T size = abs(z);
  if (size == 0) return Complex<T>(0, z.im);
  T t = sqrt((size + fabs(z.re)) / 2), u = fabs(z.im) / (2 * t);
  return z.re >= 0 ? Complex<T>(t, copysign(u, z.im)) : Complex<T>(u, copysign(t, z.im));
}
COMPLEX(sinh) { return Complex<T>(sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im)); }
COMPLEX(cosh) { return Complex<T>(cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im)); }
COMPLEX(tanh) {  // Kahan's formula, with 1 / cosh^2 in place of terms that overflow
  if (fabs(z.re) > 20) return Complex<T>(copysign(T(1), z.re), 0 * z.im);
  T t = tan(z.im), b = 1 + t * t, s = sinh(z.re), r = sqrt(1 + s * s), d = 1 + b * s * s;
  return Complex<T>(b * r * s / d, t / d);
}
COMPLEX(sin) { return over_i(sinh(times_i(z))); }
COMPLEX(cos) { return cosh(times_i(z)); }
COMPLEX(tan) { return over_i(tanh(times_i(z))); }
// Kahan 1987, "Branch cuts for complex elementary functions"
COMPLEX(asinh) {
  Complex<T> a = sqrt(Complex<T>(1 + z.im, -z.re)), b = sqrt(Complex<T>(1 - z.im, z.re));
  return Complex<T>(asinh(a.re * b.im - a.im * b.re), atan2(z.im, (a * b).re));
}
COMPLEX(acosh) {
  Complex<T> a = sqrt(Complex<T>(z.re - 1, z.im)), b = sqrt(Complex<T>(z.re + 1, z.im));
  return Complex<T>(asinh((conj(a) * b).re), 2 * atan2(a.im, b.re));
}
COMPLEX(atanh) {
  T x = z.re, y = z.im;
  T re = log1p(4 * x / ((1 - x) * (1 - x) + y * y)) / 4;
  return Complex<T>(re, atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2);
}
COMPLEX(asin) { return over_i(asinh(times_i(z))); }
COMPLEX(acos) {
  Complex<T> a = sqrt(Complex<T>(1 - z.re, -z.im)), b = sqrt(Complex<T>(1 + z.re, z.im));
  return Complex<T>(2 * atan2(a.re, b.re), asinh((conj(b) * a).im));
}
COMPLEX(atan) { return over_i(atanh(times_i(z))); }
COMPLEX_PAIR(pow) {
  if (w.re == 0 && w.im == 0) return Complex<T>(1);
  if (z.re == 0 && z.im == 0) {
    return w.re > 0 ? Complex<T>(0) : Complex<T>(infinity<T>() - infinity<T>(), infinity<T>() - infinity<T>());
  }
  if (w.im == 0 && w.re == floor(w.re) && fabs(w.re) < 100) {  // whole powers by products, as NumPy
    Complex<T> r(1), p = z;
    for (int n = int(fabs(w.re)); n; n >>= 1, p = p * p)
      if (n & 1) r = r * p;
    return w.re < 0 ? Complex<T>(1) / r : r;
  }
  return exp(w * log(z));
}
#undef COMPLEX
#undef COMPLEX_PAIR
#endif
