// CUDA functions that the C++ library lacks, with the same overloads for float.
#pragma once
#include <math.h>
#include <string.h>

#include <cmath>

#define __builtin_assume(condition)

template <class To, class From>
To shim_bits(From x) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To y;
  memcpy(&y, &x, sizeof y);
  return y;
}
inline float __int_as_float(int x) { return shim_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return shim_bits<float>(x); }
inline int __float_as_int(float x) { return shim_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return shim_bits<unsigned>(x); }
inline double __longlong_as_double(long long x) { return shim_bits<double>(x); }
inline long long __double_as_longlong(double x) { return shim_bits<long long>(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned __int128)a * b >> 64;
}
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return sqrt(a); }
template <class T> T __ldg(const T* p) { return *p; }
template <class T> T __ldcg(const T* p) { return *p; }
template <class T> void __stwb(T* p, T v) { *p = v; }
template <class T> T max(T a, T b) { return a < b ? b : a; }
template <class T> T min(T a, T b) { return b < a ? b : a; }

inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }

inline double erfcx(double x) {
  if (x < 25) return exp(x * x) * erfc(x);
  double s = 0.5 / (x * x);  // DLMF 7.12.1
  return (1 - s * (1 - 3 * s * (1 - 5 * s * (1 - 7 * s)))) / (x * sqrt(M_PI));
}

// The root of erfc(y) = p by Halley's method, starting from the inverse of the tail's logarithm.
inline double erfcinv(double p) {
  if (!(p >= 0 && p <= 2)) return NAN;
  if (p == 0 || p == 2) return p == 0 ? INFINITY : -INFINITY;
  double q = p < 1 ? p : 2 - p, t = sqrt(-2 * log(q / 2));
  double y = -0.70711 * ((2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)) - t);
  for (int k = 0; k < 4; ++k) {
    double e = erfc(y) - q;
    y += e / (1.12837916709551257 * exp(-y * y) - y * e);
  }
  return p < 1 ? y : -y;
}
inline double erfinv(double x) {
  if (fabs(x) > 0.5) return erfcinv(1 - x);  // beyond, 1 - x is exact
  double y = x * 0.886226925452758;
  for (int k = 0; k < 6; ++k) y -= (erf(y) - x) / (1.12837916709551257 * exp(-y * y));
  return y;
}
inline double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
inline double normcdfinv(double p) { return -M_SQRT2 * erfcinv(2 * p); }
double cyl_bessel_i0(double x);  // in cudashim.cpp
double cyl_bessel_i1(double x);
inline double sinpi(double x) {
  double r = fmod(fabs(x), 2), s = r > 1 ? -1 : 1;
  r = r > 1 ? r - 1 : r;
  return copysign(1, x) * s * sin(M_PI * (r > 0.5 ? 1 - r : r));
}
inline double cospi(double x) {
  double r = fmod(fabs(x), 2);
  r = r > 1 ? 2 - r : r;
  return r > 0.5 ? -sin(M_PI * (r - 0.5)) : cos(M_PI * r);
}

#define SHIM_FLOAT(name) \
  inline float name(float x) { return (float)name((double)x); }
SHIM_FLOAT(erfcx)
SHIM_FLOAT(erfcinv)
SHIM_FLOAT(erfinv)
SHIM_FLOAT(normcdf)
SHIM_FLOAT(normcdfinv)
SHIM_FLOAT(cyl_bessel_i0)
SHIM_FLOAT(cyl_bessel_i1)
SHIM_FLOAT(sinpi)
SHIM_FLOAT(cospi)
// C functions, whose names in <math.h> are for double only
SHIM_FLOAT(j0)
SHIM_FLOAT(j1)
SHIM_FLOAT(y0)
SHIM_FLOAT(y1)
SHIM_FLOAT(exp10)
inline float yn(int n, float x) { return (float)yn(n, (double)x); }
inline float jn(int n, float x) { return (float)jn(n, (double)x); }
#undef SHIM_FLOAT
