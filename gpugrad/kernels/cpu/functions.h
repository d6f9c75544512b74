// Functions of vectors, by the names that generated kernels use. NumPy's and SciPy's rules hold.
//
// Functions such as sin are called by their names in glibc's libmvec, so no compiler needs
// -ffast-math. LIBMVEC says which of them the C library has: 2 for all, 1 for the first three, 0 for
// none. There is no scalar function that rounds differently from the vector's.
#ifndef GPUGRAD_FUNCTIONS
#define GPUGRAD_FUNCTIONS

// ---- one instruction for all lanes, which compilers find in these loops

#define EACH_LANE(name)                                                 \
  template <int N> INLINE V<float, N> name(V<float, N> x) {             \
    for (int k = 0; k < N; ++k) x.of[k] = __builtin_##name##f(x.of[k]); \
    return x;                                                           \
  }                                                                     \
  template <int N> INLINE V<double, N> name(V<double, N> x) {           \
    for (int k = 0; k < N; ++k) x.of[k] = __builtin_##name(x.of[k]);    \
    return x;                                                           \
  }
EACH_LANE(sqrt)
EACH_LANE(floor)
EACH_LANE(ceil)
EACH_LANE(trunc)
EACH_LANE(rint)

// ---- bits of floats

template <class T, int N> INLINE raw<whole<sizeof(T)>, N> sign_bits() {
  return (raw<whole<sizeof(T)>, N>)V<T, N>(T(-0.0)).of;
}
template <class T, int N> INLINE V<T, N> fabs(V<T, N> x) {
  return (raw<T, N>)((raw<whole<sizeof(T)>, N>)x.of & ~sign_bits<T, N>());
}
template <class T, int N> INLINE V<T, N> copysign(V<T, N> x, V<T, N> y) {
  typedef raw<whole<sizeof(T)>, N> I;
  return (raw<T, N>)(((I)x.of & ~sign_bits<T, N>()) | ((I)y.of & sign_bits<T, N>()));
}
template <class T, int N> INLINE V<bool, N> sign_bit(V<T, N> x) {
  return V<bool, N>::from((raw<whole<sizeof(T)>, N>)x.of < 0);
}
template <class T, int N> INLINE V<bool, N> is_finite(V<T, N> x) { return x - x == T(0); }
template <class T, int N> INLINE V<bool, N> is_infinite(V<T, N> x) {
  return x == x && x - x != T(0);
}
template <class T, int N> INLINE V<T, N> sign(V<T, N> x) {
  return where(x > T(0), V<T, N>(1), where(x < T(0), V<T, N>(-1), where(x == x, V<T, N>(0), x)));
}

#include "own.h"

// ---- functions of the C library

typedef raw<float, LANES<4>> Floats;  // in a kernel whose widest elements have 4 bytes
typedef raw<float, LANES<8>> FewFloats;
typedef raw<double, LANES<8>> Doubles;

#if defined(__AVX512F__)
#define FLOATS(v, name) _ZGVeN16##v##_##name##f
#define FEW_FLOATS(v, name) _ZGVdN8##v##_##name##f
#define DOUBLES(v, name) _ZGVeN8##v##_##name
#elif defined(__AVX2__)
#define FLOATS(v, name) _ZGVdN8##v##_##name##f
#define FEW_FLOATS(v, name) _ZGVbN4##v##_##name##f
#define DOUBLES(v, name) _ZGVdN4##v##_##name
#elif defined(__x86_64__)
#define FLOATS(v, name) _ZGVbN4##v##_##name##f
#define FEW_FLOATS(v, name) few_##name
#define DOUBLES(v, name) _ZGVbN2##v##_##name
#else
#define FLOATS(v, name) _ZGVnN4##v##_##name##f
#define FEW_FLOATS(v, name) _ZGVnN2##v##_##name##f
#define DOUBLES(v, name) _ZGVnN2##v##_##name
#endif

#define CONSTANT(T, name, ...) extern "C" __attribute__((const)) T name(__VA_ARGS__) noexcept;
#if defined(__x86_64__) && !defined(__AVX2__)  // SSE has no function of two floats
INLINE Floats twice(FewFloats x) { return Floats{x[0], x[1], x[0], x[1]}; }
#define FEW_OF_ONE(name)                              \
  INLINE FewFloats few_##name(FewFloats x) {          \
    const Floats y = FLOATS(v, name)(twice(x));       \
    return FewFloats{y[0], y[1]};                     \
  }
#define FEW_OF_TWO(name)                                     \
  INLINE FewFloats few_##name(FewFloats x, FewFloats y) {    \
    const Floats z = FLOATS(vv, name)(twice(x), twice(y));   \
    return FewFloats{z[0], z[1]};                            \
  }
#else
#define FEW_OF_ONE(name) CONSTANT(FewFloats, FEW_FLOATS(v, name), FewFloats)
#define FEW_OF_TWO(name) CONSTANT(FewFloats, FEW_FLOATS(vv, name), FewFloats, FewFloats)
#endif

#define FUNCTION_OF_ONE(name)                                     \
  CONSTANT(Floats, FLOATS(v, name), Floats)                       \
  CONSTANT(Doubles, DOUBLES(v, name), Doubles)                    \
  FEW_OF_ONE(name)                                                \
  template <class T, int N> INLINE V<T, N> name(V<T, N> x) {      \
    if constexpr (sizeof(T) == 8) return DOUBLES(v, name)(x.of);  \
    else if constexpr (N == LANES<4>) return FLOATS(v, name)(x.of); \
    else return FEW_FLOATS(v, name)(x.of);                        \
  }
#define FUNCTION_OF_TWO(name)                                             \
  CONSTANT(Floats, FLOATS(vv, name), Floats, Floats)                      \
  CONSTANT(Doubles, DOUBLES(vv, name), Doubles, Doubles)                  \
  FEW_OF_TWO(name)                                                        \
  template <class T, int N> INLINE V<T, N> name(V<T, N> x, V<T, N> y) {   \
    if constexpr (sizeof(T) == 8) return DOUBLES(vv, name)(x.of, y.of);   \
    else if constexpr (N == LANES<4>) return FLOATS(vv, name)(x.of, y.of); \
    else return FEW_FLOATS(vv, name)(x.of, y.of);                         \
  }
#if LIBMVEC >= 1
FUNCTION_OF_ONE(sin)
FUNCTION_OF_ONE(cos)
FUNCTION_OF_TWO(pow)
#endif
#if LIBMVEC >= 2
FUNCTION_OF_ONE(exp2)
FUNCTION_OF_ONE(exp10)
FUNCTION_OF_ONE(expm1)
FUNCTION_OF_ONE(log2)
FUNCTION_OF_ONE(log10)
FUNCTION_OF_ONE(log1p)
FUNCTION_OF_ONE(tan)
FUNCTION_OF_ONE(asin)
FUNCTION_OF_ONE(acos)
FUNCTION_OF_ONE(atan)
FUNCTION_OF_ONE(sinh)
FUNCTION_OF_ONE(cosh)
FUNCTION_OF_ONE(asinh)
FUNCTION_OF_ONE(acosh)
FUNCTION_OF_ONE(atanh)
FUNCTION_OF_ONE(cbrt)
FUNCTION_OF_ONE(erfc)
FUNCTION_OF_TWO(atan2)
FUNCTION_OF_TWO(hypot)
#endif

// ---- division: floats as in NumPy's npy_divmod, integers divided by 0 give 0

template <class T> struct Division {
  static T floor(T a, T b) {
    if (b == 0) return 0;
    if (T(-1) < 0 && b == T(-1)) return T(0 - a);
    return T(a / b - (a % b != 0 && (a < 0) != (b < 0)));
  }
  static T rest(T a, T b) {
    if (b == 0 || (T(-1) < 0 && b == T(-1))) return 0;
    return T(a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0));
  }
};
template <class T> struct FloatDivision {
  static T remainder_of(T a, T b) {
    if constexpr (sizeof(T) == 4) return __builtin_fmodf(a, b);
    else return __builtin_fmod(a, b);
  }
  static T rest(T a, T b) {
    T r = remainder_of(a, b);
    if (b == 0) return r;
    if (r == 0) return __builtin_copysign(T(0), b);
    return (b < 0) != (r < 0) ? r + b : r;
  }
  static T floor(T a, T b) {
    if (b == 0) return a / b;
    T r = remainder_of(a, b), q = (a - r) / b;
    if (r != 0 && (b < 0) != (r < 0)) q -= 1;
    if (q == 0) return __builtin_copysign(T(0), a / b);
    T down = __builtin_floor(q);
    return q - down > T(0.5) ? down + 1 : down;
  }
};
template <> struct Division<float> : FloatDivision<float> {};
template <> struct Division<double> : FloatDivision<double> {};
// fmod of floats. The quotient in double is exact below 2^28, and so is what it leaves.
template <int N> INLINE V<float, N> fmod(V<float, N> a, V<float, N> b) {
  typedef raw<double, N> D;
  typedef V<float, N> F;
  const D x = __builtin_convertvector(a.of, D), y = __builtin_convertvector(b.of, D);
  const D q = trunc(V<double, N>(x / y)).of;
  F rest(__builtin_convertvector(x - q * y, raw<float, N>));
  // compared as floats: GCC compares vectors of more than a register one by one
  const F size = fabs(F(__builtin_convertvector(q, raw<float, N>)));
  const auto good = size.of < 0x1p28f & fabs(b).of < __builtin_inff();
  int every = -1;
  for (int k = 0; k < N; ++k) every &= good[k];
  if (__builtin_expect(!every, 0))
    for (int k = 0; k < N; ++k) rest.of[k] = __builtin_fmodf(a.of[k], b.of[k]);
  return copysign(rest, a);
}
template <int N> INLINE V<double, N> fmod(V<double, N> a, V<double, N> b) {
  for (int k = 0; k < N; ++k) a.of[k] = __builtin_fmod(a.of[k], b.of[k]);
  return a;
}
template <int N> INLINE V<float, N> remainder(V<float, N> a, V<float, N> b) {
  typedef V<float, N> F;
  const F r = fmod(a, b), moved = where((b < F(0)) == (r < F(0)), r, r + b);
  return where(b == F(0), r, where(r == F(0), copysign(F(0), b), moved));
}
template <int N> INLINE V<float, N> floor_divide(V<float, N> a, V<float, N> b) {
  typedef V<float, N> F;
  const F r = fmod(a, b);
  F q = (a - r) / b;
  q = where(r == F(0) || (b < F(0)) == (r < F(0)), q, q - F(1));
  const F down = floor(q);
  q = where(q == F(0), copysign(F(0), a / b), where(q - down > F(0.5f), down + F(1), down));
  return where(b == F(0), a / b, q);
}
template <class T, int N> INLINE V<T, N> floor_divide(V<T, N> a, V<T, N> b) {
  for (int k = 0; k < N; ++k) a.of[k] = Division<T>::floor(a.of[k], b.of[k]);
  return a;
}
template <class T, int N> INLINE V<T, N> remainder(V<T, N> a, V<T, N> b) {
  for (int k = 0; k < N; ++k) a.of[k] = Division<T>::rest(a.of[k], b.of[k]);
  return a;
}

// ---- integers

template <class T, int N> INLINE V<T, N> left_shift(V<T, N> x, V<T, N> n) {
  for (int k = 0; k < N; ++k) {
    bool fits = n.of[k] >= 0 && (unsigned long long)n.of[k] < 8 * sizeof(T);
    x.of[k] = fits ? T((unsigned long long)x.of[k] << n.of[k]) : T(0);
  }
  return x;
}
template <class T, int N> INLINE V<T, N> right_shift(V<T, N> x, V<T, N> n) {
  for (int k = 0; k < N; ++k) {
    bool fits = n.of[k] >= 0 && (unsigned long long)n.of[k] < 8 * sizeof(T);
    x.of[k] = fits ? T(x.of[k] >> n.of[k]) : x.of[k] < 0 ? T(-1) : T(0);
  }
  return x;
}

// ---- floats

template <class T, int N> INLINE V<T, N> heaviside(V<T, N> x, V<T, N> y) {
  return where(x == T(0), y, where(x < T(0), V<T, N>(0), where(x > T(0), V<T, N>(1), x)));
}
template <class T, int N> INLINE V<T, N> expit(V<T, N> x) {
  const V<T, N> e = exp(-fabs(x));
  return where(x < T(0), e, V<T, N>(1)) / (T(1) + e);
}
#if LIBMVEC >= 1
// x to a power that is the same for all elements
template <class T, int N> INLINE V<T, N> uniform_power(V<T, N> x, V<T, N> y) {
  const double exact = y[0], size = exact < 0 ? -exact : exact;
  if (!(size <= 8 && size * 2 == int(size * 2) && size)) return pow(x, y);
  const int whole = int(size);  // as in powers.py
  if (size != whole && exact != 0.5) x = x + T(0);
  V<T, N> power = whole ? x : sqrt(x);
  for (int bit = whole > 7 ? 4 : whole > 3 ? 2 : whole > 1 ? 1 : 0; bit; bit /= 2) {
    power = power * power;
    if (whole & bit) power = power * x;
  }
  if (whole && size != whole) power = power * sqrt(x);
  return exact < 0 ? T(1) / power : power;
}
template <class T, int N> INLINE V<T, N> cosm1(V<T, N> x) {
  const V<T, N> s = sin(x * T(0.5));
  return T(-2) * s * s;
}
#endif
template <class T, int N> INLINE V<T, N> xlogy(V<T, N> x, V<T, N> y) {
  return where(x == T(0) && y == y, V<T, N>(0), x * log(y));
}
template <class T, int N> INLINE V<T, N> entr(V<T, N> x) {
  const V<T, N> rest = where(x < T(0), V<T, N>(-infinity<T>()), x);
  return where(x > T(0), -x * log(x), where(x == T(0), V<T, N>(0), rest));
}
template <class T, int N> INLINE V<T, N> rel_entr(V<T, N> x, V<T, N> y) {
  const V<T, N> rest = where(x == T(0) && y >= T(0), V<T, N>(0), V<T, N>(infinity<T>()));
  const V<T, N> all = where(x > T(0) && y > T(0), x * log(x / y), rest);
  return where(x == x && y == y, all, V<T, N>(not_a_number<T>()));
}
template <class T, int N> INLINE V<T, N> kl_div(V<T, N> x, V<T, N> y) {
  const V<T, N> rest = where(x == T(0) && y >= T(0), y, V<T, N>(infinity<T>()));
  const V<T, N> all = where(x > T(0) && y > T(0), x * log(x / y) - x + y, rest);
  return where(x == x && y == y, all, V<T, N>(not_a_number<T>()));
}
template <class T, int N> INLINE V<T, N> huber(V<T, N> delta, V<T, N> x) {
  const V<T, N> size = fabs(x), line = delta * (size - delta * T(0.5));
  const V<T, N> all = where(size <= delta, x * x * T(0.5), line);
  return where(delta < T(0), V<T, N>(infinity<T>()), all);
}
template <class T, int N> INLINE V<T, N> pseudo_huber(V<T, N> delta, V<T, N> x) {
  const V<T, N> r = x / delta, all = x * x / (T(1) + sqrt(T(1) + r * r));
  const V<T, N> most = where(delta == T(0) || x == T(0), V<T, N>(0), all);
  return where(delta < T(0), V<T, N>(infinity<T>()), most);
}
#if LIBMVEC >= 2
template <class T, int N> INLINE V<T, N> log_expit(V<T, N> x) {
  return where(x < T(0), x, V<T, N>(0)) - log1p(exp(-fabs(x)));
}
template <class T, int N> INLINE V<T, N> logit(V<T, N> x) {
  const V<T, N> s = (x - T(0.5)) * T(2);  // exact near 0.5
  return where(fabs(s) < T(0.35), log1p(s) - log1p(-s), log(x / (T(1) - x)));
}
template <class T, int N> INLINE V<T, N> logaddexp(V<T, N> x, V<T, N> y) {
  const V<T, N> d = x - y, all = where(d > T(0), x, y) + log1p(exp(-fabs(d)));
  return where(x == y, x + T(0.6931471805599453), where(d == d, all, d));
}
template <class T, int N> INLINE V<T, N> logaddexp2(V<T, N> x, V<T, N> y) {
  const V<T, N> d = x - y;
  const V<T, N> all = where(d > T(0), x, y) + T(1.4426950408889634) * log1p(exp2(-fabs(d)));
  return where(x == y, x + T(1), where(d == d, all, d));
}
template <class T, int N> INLINE V<T, N> xlog1py(V<T, N> x, V<T, N> y) {
  return where(x == T(0) && y == y, V<T, N>(0), x * log1p(y));
}
// The normal distribution function: erfc of x / -sqrt(2), and its derivative times what rounding
// that quotient has lost, which for x = -10 is 50 units in the last place.
template <int N> INLINE V<double, N> normcdf(V<double, N> x) {
  constexpr long double root = 0.70710678118654752440L;
  const V<long long, N> high = ~((1ll << 27) - 1);
  const V<double, N> r = bits<double>(bits<long long>(V<double, N>(root)) & high);
  const V<double, N> rest = (double)(root - (long double)r[0]);
  const V<double, N> h = bits<double>(bits<long long>(x) & high), l = x - h;
  const V<double, N> z = x * (double)root, lost = ((h * r - z) + h * rest + l * r) + l * rest;
  const V<double, N> slope = 1.1283791670955126 * exp(-z * z);
  return 0.5 * (erfc(-z) + where(slope > 0.0, slope * lost, V<double, N>(0)));
}
#endif
#include "special.h"
#endif
