// Splines of orders 0 to 5 at points of 1 to 3 coordinates: values, slopes by the coordinates, and
// the transpose, which adds values to the coefficients. `axis_taps` in gpugrad/ops/scipy/splines.py
// has the formulas.
#include "pool.h"

#include <algorithm>
#include <cmath>

namespace {

enum { CONSTANT, GRID_CONSTANT, NEAREST, MIRROR, REFLECT, GRID_MIRROR, WRAP, GRID_WRAP };
const long PIECE = 4096;  // points of a piece for a thread

struct Job {
  const void *x, *where, *g;
  void *out, *slopes;
  const long* shape;
  long mode, points;
};

inline bool is_mirrored(long mode) { return mode == MIRROR || mode == REFLECT || mode == GRID_MIRROR; }
inline double clipped(double t, long n) { return std::min(std::max(t, 0.0), n - 1.0); }

// The position within an axis; `factor` becomes its derivative.
inline double mapped(double t, long n, long mode, double* factor) {
  if (n <= 1) {
    *factor = 0;
    return t * 0;
  }
  if (t >= 0 && t <= n - 1) return t;
  if (is_mirrored(mode)) {
    const double half = mode == MIRROR ? n - 1 : n, more = mode == MIRROR ? 0 : 0.5;
    const double from = t + more - half - 2 * half * std::floor((t + more) / (2 * half));
    *factor = from > 0 ? -1 : from < 0 ? 1 : -from;
    return half - std::fabs(from) - more;
  }
  if (mode == NEAREST) return clipped(t, n);
  const double period = n - 1;
  if (mode != WRAP) return t - n * std::floor(t / n);
  return t < 0 ? t + period * (std::trunc(-t / period) + 1) : t - period * std::trunc(t / period);
}

template <int P> struct Taps {
  long at[P + 1];
  double w[P + 1], s[P + 1];

  void set(double t, long n, long step, long mode) {
    double factor = 1, ignored;
    if (mode == CONSTANT) t = clipped(t, n);
    else if (mode != GRID_CONSTANT && mode != NEAREST) t = mapped(t, n, mode, &factor);
    const double base = std::floor(P % 2 ? t : t + 0.5), u = t - base + (P % 2 ? 0 : 0.5);
    double v[P + 2] = {1}, slope[P + 2] = {0};
#pragma GCC unroll 6
    for (int p = 1; p <= P; ++p) {
      if (p == P)
        for (int i = 0; i <= p; ++i) slope[i] = (i < p ? v[i] : 0) - (i ? v[i - 1] : 0);
#pragma GCC unroll 6
      for (int i = p; i >= 0; --i)
        v[i] = ((i < p ? (u + i) * v[i] : 0) + (i ? (p + 1 - i - u) * v[i - 1] : 0)) / p;
    }
    const double start = base - P / 2;
    const bool inside = start >= 0 && start + P <= n - 1;
    const long inner = mode == CONSTANT || mode == WRAP ? (long)MIRROR : mode;
    for (int i = 0; i <= P; ++i) {
      double a = start + i;
      w[i] = v[P - i], s[i] = slope[P - i] * factor;
      if (!inside && mode == GRID_CONSTANT && !(a >= 0 && a <= n - 1)) w[i] = s[i] = 0;
      if (!inside) a = a == a ? clipped(mapped(a, n, inner, &ignored), n) : 0;
      at[i] = (long)a * step;
    }
  }
};

// The value and the slopes by axis K and those behind it.
template <int D, int P, int K, class T>
inline void read(const T* x, const Taps<P>* taps, double& value, double* d) {
  value = 0;
  for (int k = K; k < D; ++k) d[k] = 0;
  for (int i = 0; i <= P; ++i) {
    double inner, of[D];
    if constexpr (K + 1 < D) read<D, P, K + 1>(x + taps[K].at[i], taps, inner, of);
    else inner = x[taps[K].at[i]];
    value += taps[K].w[i] * inner;
    d[K] += taps[K].s[i] * inner;
    for (int k = K + 1; k < D; ++k) d[k] += taps[K].w[i] * of[k];
  }
}

template <int D, int P, int K, class T> inline void add(T* x, const Taps<P>* taps, double g) {
  for (int i = 0; i <= P; ++i) {
    if constexpr (K + 1 < D) add<D, P, K + 1>(x + taps[K].at[i], taps, g * taps[K].w[i]);
    else x[taps[K].at[i]] += (T)(g * taps[K].w[i]);
  }
}

template <int D, int P> inline void set(const Job& job, long point, Taps<P>* taps) {
  long step = 1;
  for (int k = D - 1; k >= 0; step *= job.shape[k--])
    taps[k].set(((const double*)job.where)[k * job.points + point], job.shape[k], step, job.mode);
}

// Values go to `out`, and `g` times the slopes to `slopes`, where these are there.
template <class T, int D, int P> void values(void* state, long piece) {
  const Job& job = *(Job*)state;
  const long high = std::min((piece + 1) * PIECE, job.points);
  for (long i = piece * PIECE; i < high; ++i) {
    Taps<P> taps[D];
    set<D, P>(job, i, taps);
    double value, d[D];
    read<D, P, 0>((const T*)job.x, taps, value, d);
    if (job.out) ((T*)job.out)[i] = (T)value;
    for (int k = 0; k < D && job.slopes; ++k)
      ((double*)job.slopes)[k * job.points + i] = ((const T*)job.g)[i] * d[k];
  }
}

template <class T, int D, int P> void spread(void* state, long) {
  const Job& job = *(Job*)state;
  for (long i = 0; i < job.points; ++i) {
    Taps<P> taps[D];
    set<D, P>(job, i, taps);
    add<D, P, 0>((T*)job.out, taps, ((const T*)job.g)[i]);
  }
}

template <class T, int D> gpugrad_job of_order(long order, bool spreads) {
  const gpugrad_job jobs[][2] = {
      {values<T, D, 0>, spread<T, D, 0>}, {values<T, D, 1>, spread<T, D, 1>},
      {values<T, D, 2>, spread<T, D, 2>}, {values<T, D, 3>, spread<T, D, 3>},
      {values<T, D, 4>, spread<T, D, 4>}, {values<T, D, 5>, spread<T, D, 5>}};
  return jobs[order][spreads];
}
template <class T> gpugrad_job of(long axes, long order, bool spreads) {
  return axes == 1 ? of_order<T, 1>(order, spreads)
         : axes == 2 ? of_order<T, 2>(order, spreads) : of_order<T, 3>(order, spreads);
}

}  // namespace

// `where` is (axes, points); `x` has `shape`; `g` and the result have the points, or for `spreads` the
// result has `shape`.
extern "C" void gpugrad_spline(
    long wide, long axes, long order, long mode, long spreads, const void* x, const void* where,
    const void* g, void* out, void* slopes, const long* shape, long points) {
  Job job = {x, where, g, out, slopes, shape, mode, points};
  const gpugrad_job run = wide ? of<double>(axes, order, spreads) : of<float>(axes, order, spreads);
  if (spreads) run(&job, 0);
  else gpugrad_parallel(run, &job, (points + PIECE - 1) / PIECE);
}
