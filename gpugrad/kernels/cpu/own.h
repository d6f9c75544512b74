// exp, log, tanh, erf and erfc of vectors, which kernels call most: without a call, and with no slow path
// for infinities. At most 2 units in the last place from the exact value.
#ifndef GPUGRAD_OWN
#define GPUGRAD_OWN

// Whether multiply_add rounds once.
#if defined(__FMA__) && !defined(__clang__)
constexpr bool FUSED = true;
#else
constexpr bool FUSED = false;
#endif
template <class T, int N> INLINE V<T, N> multiply_add(V<T, N> a, V<T, N> b, V<T, N> c) {
#if defined(__FMA__) && !defined(__clang__)  // by name: GCC does not find it in a loop over lanes
#ifdef __AVX512F__
  if constexpr (sizeof(T) == 4 && N == 16)
    return __builtin_ia32_vfmaddps512_mask(a.of, b.of, c.of, -1, 4);
  if constexpr (sizeof(T) == 8 && N == 8)
    return __builtin_ia32_vfmaddpd512_mask(a.of, b.of, c.of, -1, 4);
#endif
  if constexpr (sizeof(T) == 4 && N == 8) return __builtin_ia32_vfmaddps256(a.of, b.of, c.of);
  if constexpr (sizeof(T) == 4 && N == 4) return __builtin_ia32_vfmaddps(a.of, b.of, c.of);
  if constexpr (sizeof(T) == 8 && N == 4) return __builtin_ia32_vfmaddpd256(a.of, b.of, c.of);
#endif
  return a * b + c;
}

// x, but not below `low` and not above `high`; NaN stays.
template <class T, int N> INLINE V<T, N> limited(V<T, N> x, T low, T high) {
#if defined(__AVX512F__) && !defined(__clang__)  // GCC finds min and max for finite numbers only
  if constexpr (sizeof(T) == 4 && N == 16) {
    const raw<T, N> y = __builtin_ia32_maxps512_mask(V<T, N>(low).of, x.of, x.of, -1, 4);
    return __builtin_ia32_minps512_mask(V<T, N>(high).of, y, y, -1, 4);
  }
  if constexpr (sizeof(T) == 8 && N == 8) {
    const raw<T, N> y = __builtin_ia32_maxpd512_mask(V<T, N>(low).of, x.of, x.of, -1, 4);
    return __builtin_ia32_minpd512_mask(V<T, N>(high).of, y, y, -1, 4);
  }
#endif
  return where(x < low, V<T, N>(low), where(x > high, V<T, N>(high), x));
}

// Horner's rule, from the highest power.
template <class A, class T> INLINE A polynomial(A x, T c) { return A(c); }
template <class A, class T, class... C> INLINE A polynomial_from(A x, A sum, T c, C... rest) {
  const A next = multiply_add(sum, x, A(c));
  if constexpr (sizeof...(rest) == 0) return next;
  else return polynomial_from(x, next, rest...);
}
template <class A, class T, class... C> INLINE A polynomial(A x, T c, C... rest) {
  return polynomial_from(x, A(c), rest...);
}

template <class T> struct Format;
template <> struct Format<float> {
  static constexpr int bias = 127, mantissa = 23;
  static constexpr float round = 0x1.8p23f, lowest = -104, highest = 89;
  static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;  // Cephes expf
  static constexpr float log_high = 6.9313812256e-01f, log_low = 9.0580006145e-06f;  // FreeBSD logf
  static constexpr int root_half = 0x3f3504f3;
  static constexpr float tiny = 0x1p-126f, up = 0x1p25f;
};
template <> struct Format<double> {
  static constexpr int bias = 1023, mantissa = 52;
  static constexpr double round = 0x1.8p52, lowest = -746, highest = 710;
  static constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
  static constexpr double log_high = ln2_high, log_low = ln2_low;  // both of fdlibm
  static constexpr long long root_half = 0x3fe6a09e667f3bcd;
  static constexpr double tiny = 0x1p-1022, up = 0x1p54;
};

// x times 2 to the n, whole numbers as floats.
template <class T, int N> INLINE V<T, N> scale(V<T, N> x, V<T, N> n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4 && N == 16)
    return (raw<T, N>)__builtin_ia32_scalefps512_mask(
        (raw<float, 16>)x.of, (raw<float, 16>)n.of, (raw<float, 16>)x.of, -1, 4);
  if constexpr (sizeof(T) == 8 && N == 8)
    return (raw<T, N>)__builtin_ia32_scalefpd512_mask(
        (raw<double, 8>)x.of, (raw<double, 8>)n.of, (raw<double, 8>)x.of, -1, 4);
#endif
  // in two factors, neither of which overflows; the second rounds to a subnormal
  typedef Format<T> F;
  typedef whole<sizeof(T)> I;
  const raw<I, N> whole_n = __builtin_convertvector(n.of, raw<I, N>);
  const raw<I, N> half = whole_n >> 1, rest = whole_n - half;
  const V<T, N> first = (raw<T, N>)((half + F::bias) << F::mantissa);
  const V<T, N> second = (raw<T, N>)((rest + F::bias) << F::mantissa);
  return x * first * second;
}

template <class T, int N> INLINE V<T, N> exp(V<T, N> x) {
  typedef Format<T> F;
  typedef whole<sizeof(T)> I;
  x = limited(x, F::lowest, F::highest);
  const V<T, N> round = F::round;
  const V<T, N> n = multiply_add(x, V<T, N>(1.44269504088896340736), round) - round;
  const V<T, N> above = multiply_add(n, V<T, N>(-F::ln2_high), x);
  const V<T, N> r = multiply_add(n, V<T, N>(-F::ln2_low), above);
  V<T, N> y;
  if constexpr (sizeof(T) == 4) {
    const V<T, N> p = polynomial(r, 1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f);
    y = multiply_add(p, r * r, r) + T(1);
  } else {  // fdlibm
    const V<T, N> t = r * r;
    const V<T, N> c = r - t * polynomial(t, 4.13813679705723846039e-08, -1.65339022054652515390e-06,
                                         6.61375632143793436117e-05, -2.77777777770155933842e-03,
                                         1.66666666666666019037e-01);
    y = T(1) + (r * c / (T(2) - c) + r);
  }
  return scale(y, n);
}

template <class T, int N> INLINE V<T, N> log(V<T, N> x) {
  typedef Format<T> F;
  typedef whole<sizeof(T)> I;
  const V<bool, N> small = x < F::tiny;
  const V<T, N> scaled = where(small, x * F::up, x);
  const raw<I, N> offset = bits<I>(scaled).of - F::root_half;
  const raw<I, N> exponent = offset >> F::mantissa;
  const V<T, N> m = (raw<T, N>)(bits<I>(scaled).of - (exponent << F::mantissa));
  const V<T, N> f = m - T(1), s = f / (T(2) + f), z = s * s, w = z * z, half = T(0.5) * f * f;
  V<T, N> r;
  if constexpr (sizeof(T) == 4) {
    r = z * polynomial(w, 0.28498786688f, 0.66666662693f) +
        w * polynomial(w, 0.24279078841f, 0.40000972152f);
  } else {
    r = z * polynomial(w, 1.479819860511658591e-01, 1.818357216161805012e-01,
                       2.857142874366239149e-01, 6.666666666666735130e-01) +
        w * polynomial(w, 1.531383769920937332e-01, 2.222219843214978396e-01,
                       3.999999999940941908e-01);
  }
  const V<T, N> e = (V<T, N>)V<I, N>(exponent);
  const V<T, N> k = where(small, e - T(F::mantissa + 2), e);
  const V<T, N> y = s * (half + r) + k * F::log_low - half + f + k * F::log_high;
  const V<T, N> special = where(x == T(0), V<T, N>(-infinity<T>()),
                                where(x < T(0), V<T, N>(not_a_number<T>()), x));
  return where(x > T(0) && x < infinity<T>(), y, special);
}

// Cephes: a polynomial or a quotient of two near 0, and exp elsewhere.
template <class T, int N> INLINE V<T, N> tanh(V<T, N> x) {
  const V<T, N> z = x * x, size = fabs(x);
  V<T, N> near;
  if constexpr (sizeof(T) == 4) {
    near = polynomial(z, -5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f,
                      1.33314422036e-1f, -3.33332819422e-1f) * z * x + x;
  } else {
    near = x * (z * polynomial(z, -9.64399179425052238628e-1, -9.92877231001918586564e1,
                               -1.61468768441708447952e3) /
                polynomial(z, 1.0, 1.12811678491632931402e2, 2.23548839060100448583e3,
                           4.84406305325125486048e3)) + x;
  }
  const V<T, N> far = T(1) - T(2) / (exp(size + size) + T(1));
  return copysign(where(size < T(0.625), near, far), x);
}

// Polynomials of this file's own: of erf(x) / x - 1 in x * x up to 1, and of exp(x * x) erfc(x) in
// (x - 2) / (x + 2) above, both by Chebyshev's interpolation.
template <class T, int N> INLINE V<T, N> erf(V<T, N> x) {
  constexpr T most = sizeof(T) == 4 ? 4 : 6;  // where erf rounds to 1
  const V<T, N> z = x * x, size = where(x > most || x < -most, V<T, N>(most), fabs(x));
  const V<T, N> t = (size - T(2)) / (size + T(2));
  V<T, N> near, far;
  if constexpr (sizeof(T) == 4) {
    near = polynomial(z, 7.875875063e-5f, -8.016864287e-4f, 5.189087423e-3f, -2.685421201e-2f,
                      1.128359472e-1f, -3.761262667e-1f, 1.28379166e-1f);
    far = polynomial(t, 4.987674193e-5f, -9.395269022e-4f, -8.476555787e-4f, 6.993954025e-3f,
                     3.732908027e-3f, -7.897847315e-2f, 2.416581941e-1f, -4.271858483e-1f,
                     2.553956763e-1f);
  } else {
    near = polynomial(z, 5.9571761477489114e-11, -1.13728488567916737e-9, 1.46597752740474358e-8,
                      -1.6350312701054695e-7, 1.6461000484121368e-6, -1.49255952668311816e-5,
                      1.20553311116427109e-4, -8.54832698083378991e-4, 5.22397762481801447e-3,
                      -2.68661706450767932e-2, 1.12837916709548787e-1, -3.76126389031837481e-1,
                      1.28379167095512570e-1);
    far = polynomial(t, -4.21530105423832099e-7, -5.32269685565578634e-7, 1.17807752156255826e-6,
                     3.78921564375846397e-6, 1.39262118361880293e-6, -1.39680723017714607e-5,
                     -2.75798646743057859e-5, 2.75254803612060667e-5, 1.74361165453922637e-4,
                     4.35556021951547221e-5, -9.81977026567888923e-4, -8.47143250920384401e-4,
                     6.99746173920044377e-3, 3.73289240432776392e-3, -7.89785810157321254e-2,
                     2.41658194242466464e-1, -4.27185847413958397e-1, 2.55395676310505744e-1);
  }
  const V<T, N> above = multiply_add(-exp(-(size * size)), far, V<T, N>(1));
  const V<T, N> below = multiply_add(x, near, x);
  return where(fabs(x) < T(1), below, where(x == x, copysign(above, x), x));
}

// What rounding takes from x * x, which exp would magnify.
template <int N> INLINE V<float, N> lost_of_square(V<float, N> x, V<float, N> square) {
  if constexpr (FUSED) return multiply_add(x, x, -square);
  const V<float, N> high = (raw<float, N>)((raw<int, N>)x.of & ~0xfff);
  return (high * high - square) + (x - high) * (x + high);
}

// (1 + 2 x) exp(x * x) erfc(x) - 1 is a polynomial of (x - 2) / (x + 2), by Chebyshev's interpolation
// up to 10.2.
template <int N> INLINE V<float, N> erfc(V<float, N> x) {
  const V<float, N> size = where(fabs(x) > 10.2f, V<float, N>(10.2f), fabs(x));
  const V<float, N> square = size * size, lost = lost_of_square(size, square);
  const V<float, N> e = exp(-square), t = (size - 2.f) / (size + 2.f);
  const V<float, N> q = polynomial(t, -0.000422515471f, -0.00126063436f, 0.00132876772f, 0.00866199835f,
                                   -0.00806206843f, -0.0542138765f, 0.164055199f,
                                   -0.166030434f, -0.0927639632f, 0.276978377f);
  const V<float, N> tail = (e + e * (q - (lost + lost * q))) / (1.f + 2.f * size);
  return where(x == x, where(x < 0.f, 2.f - tail, tail), x);
}

// The normal distribution function Q at -|x|: exp(x * x / 2) Q is a polynomial of
// t = 1 / (1 + 0.32 |x|), that of ops/special/normal.py.
template <int N> INLINE V<float, N> normcdf(V<float, N> x) {
  const V<float, N> size = where(fabs(x) > 15.f, V<float, N>(15.f), fabs(x));  // Q rounds to 0
  const V<float, N> t = V<float, N>(1) / multiply_add(size, V<float, N>(0.32f), V<float, N>(1));
  const V<float, N> e = exp(-0.5f * x * x), lost = -0.5f * lost_of_square(size, size * size);
  const V<float, N> q = t * polynomial(t, -0.0210782686f, 0.0954077055f, -0.146708291f, 0.0653288569f,
                                       -0.00937805005f, 0.0586541235f, 0.0878290722f,
                                       0.114622361f, 0.127660947f, 0.127661529f);
  const V<float, N> below = e * multiply_add(q, lost, q);
  return where(x < 0.f, below, 1.f - below);
}
#endif
