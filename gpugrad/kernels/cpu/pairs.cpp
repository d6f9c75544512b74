// Distances between all pairs of two sets of vectors, and their gradient, from the differences:
// neither products of vectors, which cancel, nor m * n * k numbers in memory.
#define LIBMVEC 0
#include "vector.h"
#include "own.h"

#include "pool.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

const long ROWS = 4;  // vectors of the first set at a time
const long STRIP = 128;  // squares that one sum adds up
const long LINES = 16;  // gradients at a time: the weights of one cache line

template <class T> constexpr int N = LANES<(int)sizeof(T)>;
template <class T> using Vec = V<T, N<T>>;

struct Job {
  const void *x, *y, *g, *d;
  void* out;
  long m, n, k, row, column;  // the last two: steps in `g` and `d`
  double p = 0;
  long real = 0;  // columns of `g`, which has no padding
  long own = 0;  // whether `g` is a line of the pairs of one set
};

// The ROWS vectors of x from `low` on; the first one again in place of those behind the end.
template <class T> INLINE void rows_of(const Job& job, long low, const T** x) {
  for (long r = 0; r < ROWS; ++r)
    x[r] = (const T*)job.x + (low + r < job.m ? low + r : low) * job.k;
}

// x is (m, k), y is (k, n) and n a multiple of N; out is (m, n).
template <class T> void distances(void* state, long piece) {
  const Job& job = *(Job*)state;
  const long n = job.n, low = piece * ROWS;
  const T *y = (const T*)job.y, *x[ROWS];
  rows_of(job, low, x);
  for (long j = 0; j < n; j += N<T>) {
    Vec<T> total[ROWS];
    for (long r = 0; r < ROWS; ++r) total[r] = T(0);
    for (long from = 0; from < job.k; from += STRIP) {
      const long to = job.k - from < STRIP ? job.k : from + STRIP;
      Vec<T> sum[ROWS];
      for (long r = 0; r < ROWS; ++r) sum[r] = T(0);
      for (long i = from; i < to; ++i) {
        const Vec<T> b = load<N<T>, N<T>>(y + i * n + j);
        for (long r = 0; r < ROWS; ++r) {
          const Vec<T> d = x[r][i] - b;
          sum[r] += d * d;
        }
      }
      for (long r = 0; r < ROWS; ++r) total[r] += sum[r];
    }
    for (long r = 0; r < ROWS && low + r < job.m; ++r)
      store<N<T>>((T*)job.out + (low + r) * n + j, sqrt(total[r]));
  }
}

// out[i] = the sum of g[i, j] / d[i, j] * (x[i] - y[j]) over j, without those where d is 0. Rows of
// x, y and out have k elements, a multiple of N.
template <class T> void gradient(void* state, long piece) {
  const Job& job = *(Job*)state;
  const long low = piece * LINES, rows = job.m - low < LINES ? job.m - low : LINES;
  const T *g = (const T*)job.g + low * job.row, *d = (const T*)job.d + low * job.row;
  const T *x = (const T*)job.x + low * job.k, *y = (const T*)job.y;
  T* weights = new T[LINES * STRIP];
  for (long i = 0; i < rows * job.k; ++i) ((T*)job.out)[low * job.k + i] = 0;
  for (long from = 0; from < job.n; from += STRIP) {
    const long count = job.n - from < STRIP ? job.n - from : STRIP;
    for (long j = 0; j < count; ++j)
      for (long r = 0; r < LINES; ++r) {
        const long at = r * job.row + (from + j) * job.column;
        weights[j * LINES + r] = r >= rows || d[at] == 0 ? T(0) : g[at] / d[at];
      }
    for (long k = 0; k < job.k; k += N<T>) {
      Vec<T> own[LINES], sum[LINES];
      for (long r = 0; r < LINES; ++r) {
        own[r] = load<N<T>, N<T>>(x + (r < rows ? r : 0) * job.k + k);
        sum[r] = T(0);
      }
      for (long j = 0; j < count; ++j) {
        const Vec<T> b = load<N<T>, N<T>>(y + (from + j) * job.k + k);
        for (long r = 0; r < LINES; ++r) sum[r] += weights[j * LINES + r] * (own[r] - b);
      }
      for (long r = 0; r < rows; ++r) {
        T* to = (T*)job.out + (low + r) * job.k + k;
        store<N<T>>(to, load<N<T>, N<T>>(to) + sum[r]);
      }
    }
  }
  delete[] weights;
}

// Whether each distance is 0, or finite and at least `least`.
template <class T> long all_exact(const T* d, long n, T least) {
  long wrong = 0;
  for (long i = 0; i < n; ++i) wrong += (d[i] != 0) & !(d[i] >= least && d[i] < infinity<T>());
  return !wrong;
}

// ---- sums of a term of two elements, or the largest one, and the slope of a term by its first one

template <class W, class F> INLINE W by_lane(W x, F f) {
  for (unsigned k = 0; k < sizeof(x.of) / sizeof(x.of[0]); ++k) x.of[k] = f(x.of[k]);
  return x;
}
template <class W> INLINE W sign(W x) { return where(x > W(0), W(1), where(x < W(0), W(-1), x)); }

struct Sum_ {
  static const bool MOST = false;
  template <class W> static INLINE W join(W a, W b) { return a + b; }
};
struct Cityblock : Sum_ {
  template <class W> static INLINE W term(W a, W b, double) { return fabs(a - b); }
  template <class W> static INLINE W slope(W a, W b, W, double) { return sign(a - b); }
};
struct Squares : Sum_ {
  template <class W> static INLINE W term(W a, W b, double) { return (a - b) * (a - b); }
  template <class W> static INLINE W slope(W a, W b, W, double) { return W(2) * (a - b); }
};
struct Totals : Sum_ {
  template <class W> static INLINE W term(W a, W b, double) { return fabs(a + b); }
  template <class W> static INLINE W slope(W a, W b, W, double) { return sign(a + b); }
};
struct Canberra : Sum_ {
  template <class W> static INLINE W term(W a, W b, double) {
    const W s = fabs(a) + fabs(b);
    return where(s == W(0), W(0), fabs(a - b) / s);
  }
  template <class W> static INLINE W slope(W a, W b, W, double) {
    const W s = fabs(a) + fabs(b), d = a - b;
    return where(s == W(0), W(0), (sign(d) - fabs(d) / s * sign(a)) / s);
  }
};
struct Power : Sum_ {
  template <class W> static INLINE W term(W a, W b, double p) {
    return by_lane(fabs(a - b), [p](auto d) { return std::pow(d, (decltype(d))p); });
  }
  template <class W> static INLINE W slope(W a, W b, W, double p) {
    const W d = a - b, power = by_lane(fabs(d), [p](auto d) {
      return (decltype(d))p * std::pow(d, (decltype(d))(p - 1));
    });
    return where(d == W(0), W(0), sign(d) * power);
  }
};
struct Entropy : Sum_ {
  template <class W> static INLINE W part(W a, W m) {
    return where(a == W(0) && m >= W(0), W(0), a * log(a / m));
  }
  template <class W> static INLINE W term(W a, W b, double) {
    const W m = (a + b) / W(2), infinite = W(__builtin_inf());
    return where(a < W(0) || b < W(0), infinite, part(a, m) + part(b, m));
  }
  template <class W> static INLINE W slope(W a, W b, W, double) {
    return where(a == W(0) && b == W(0), W(0), log(W(2) * a / (a + b)));
  }
};
struct Chebyshev {
  static const bool MOST = true;
  template <class W> static INLINE W term(W a, W b, double) { return fabs(a - b); }
  template <class W> static INLINE W join(W a, W b) { return where(b > a || b != b, b, a); }
  template <class W> static INLINE W slope(W a, W b, W most, double) {
    return where(fabs(a - b) == most, sign(a - b), W(0));
  }
};

// Into `sum`, the terms of the rows at `x` and of the columns of y from j on.
template <class T, class F>
INLINE void join_terms(const Job& job, const T* const* x, long j, Vec<T>* sum) {
  for (long r = 0; r < ROWS; ++r) sum[r] = T(0);
  for (long i = 0; i < job.k; ++i) {
    const Vec<T> b = load<N<T>, N<T>>((const T*)job.y + i * job.n + j);
    for (long r = 0; r < ROWS; ++r)
      sum[r] = F::join(sum[r], F::term(Vec<T>(x[r][i]), b, job.p));
  }
}

// As `distances`, without the root.
template <class T, class F> void sums(void* state, long piece) {
  const Job& job = *(Job*)state;
  const long n = job.n, low = piece * ROWS;
  const T* x[ROWS];
  rows_of(job, low, x);
  for (long j = 0; j < n; j += N<T>) {
    Vec<T> sum[ROWS];
    join_terms<T, F>(job, x, j, sum);
    for (long r = 0; r < ROWS && low + r < job.m; ++r)
      store<N<T>>((T*)job.out + (low + r) * n + j, sum[r]);
  }
}

// Where the pair (i, j), i < j, of m vectors is in SciPy's order, without j.
INLINE long before(long i, long m) { return i * m - i * (i + 3) / 2 - 1; }

// As `sums`, of the pairs (i, j), i < j, of one set, of which y has all columns. `out` is a line.
template <class T, class F> void own_sums(void* state, long piece) {
  const Job& job = *(Job*)state;
  const long n = job.n, m = job.m, low = piece * ROWS, rows = std::min(m - low, ROWS);
  const T* x[ROWS];
  rows_of(job, low, x);
  for (long j = (low + 1) / N<T> * N<T>; j < n; j += N<T>) {
    Vec<T> sum[ROWS];
    join_terms<T, F>(job, x, j, sum);
    for (long r = 0; r < rows; ++r) {
      T* to = (T*)job.out + before(low + r, m);
      if (j > low + r && j + N<T> <= m)
        store<N<T>>(to + j, sum[r]);
      else
        for (long i = j; i < std::min(j + N<T>, m); ++i)
          if (i > low + r) to[i] = sum[r][i - j];
    }
  }
}

// From a line g of the pairs of one set, those of rows from `low` and columns from `from` on.
template <class T>
void own_cotangents(const T* g, long m, long low, long rows, long from, long real, T* weights) {
  const long near = std::clamp(low - from, 0L, std::max(real, 0L));
  for (long j = 0; j < near; ++j)
    for (long r = 0; r < rows; ++r) weights[r * STRIP + j] = g[before(from + j, m) + low + r];
  for (long r = 0; r < rows; ++r) {
    const long own = low + r, after = std::max(own + 1 - from, near);  // of the pairs (own, j)
    for (long j = near; j < std::min(own - from, real); ++j)
      weights[r * STRIP + j] = g[before(from + j, m) + own];
    for (long j = after; j < real; ++j) weights[r * STRIP + j] = g[before(own, m) + from + j];
  }
}

// out[i, k] = the sum of g[i, j] times the slope at x[i, k] and y[k, j] over j; x and out are (m, k),
// y is (k, n) as in `sums`. Of the largest terms of a pair each gets an equal part.
template <class T, class F> void sums_gradient(void* state, long piece) {
  const Job& job = *(Job*)state;
  const long low = piece * LINES, rows = std::min(job.m - low, LINES), n = job.n, size = job.k;
  const T *y = (const T*)job.y, *x = (const T*)job.x + low * size;
  const T* g = (const T*)job.g + low * job.row;
  std::vector<T> weights(LINES * STRIP), most(F::MOST ? LINES * STRIP : 1);
  std::vector<Vec<T>> total(LINES * size, Vec<T>(T(0)));
  for (long from = 0; from < n; from += STRIP) {
    const long width = std::min(n - from, STRIP), real = std::min(job.real - from, width);
    std::fill(weights.begin(), weights.end(), T(0));
    if (job.own)
      own_cotangents(g, job.m, low, rows, from, real, weights.data());
    else if (job.column == 1)
      for (long r = 0; r < rows; ++r)
        for (long j = 0; j < real; ++j) weights[r * STRIP + j] = g[r * job.row + from + j];
    else
      for (long j = 0; j < real; ++j)
        for (long r = 0; r < rows; ++r)
          weights[r * STRIP + j] = g[r * job.row + (from + j) * job.column];
    if (F::MOST)
      for (long r = 0; r < rows; ++r)
        for (long j = 0; j < width; j += N<T>) {
          Vec<T> top = T(0), ties = T(0);
          for (long k = 0; k < size; ++k) {
            const Vec<T> b = load<N<T>, N<T>>(y + k * n + from + j);
            const Vec<T> t = F::term(Vec<T>(x[r * size + k]), b, job.p), one = T(1), none = T(0);
            ties = where(t > top, one, where(t == t, ties + where(t == top, one, none), none));
            top = F::join(top, t);
          }
          T* weight = weights.data() + r * STRIP + j;
          store<N<T>>(most.data() + r * STRIP + j, top);
          store<N<T>>(weight, load<N<T>, N<T>>(weight) / ties);
        }
    for (long r = 0; r < rows; r += ROWS)
      for (long k = 0; k < size; ++k) {
        Vec<T> own[ROWS], sum[ROWS];
        for (long q = 0; q < ROWS; ++q) {
          own[q] = Vec<T>(x[(r + q < rows ? r + q : r) * size + k]);
          sum[q] = T(0);
        }
        for (long j = 0; j < width; j += N<T>) {
          const Vec<T> b = load<N<T>, N<T>>(y + k * n + from + j);
          for (long q = 0; q < ROWS; ++q) {
            const long at = (r + q) * STRIP + j;
            const Vec<T> top = F::MOST ? load<N<T>, N<T>>(most.data() + at) : b;
            sum[q] += load<N<T>, N<T>>(weights.data() + at) * F::slope(own[q], b, top, job.p);
          }
        }
        for (long q = 0; q < ROWS; ++q) total[(r + q) * size + k] += sum[q];
      }
  }
  for (long i = 0; i < rows * size; ++i)
    ((T*)job.out)[low * size + i] = over_lanes(Sum(), total[i])[0];
}

// The jobs of each term, in the order of `TERMS` in pairs.py.
template <class T> struct Jobs {
  gpugrad_job sums, gradient, own;
  template <class F> static Jobs of() {
    return {::sums<T, F>, ::sums_gradient<T, F>, ::own_sums<T, F>};
  }
  static Jobs at(long term) {
    const Jobs all[] = {of<Cityblock>(), of<Squares>(), of<Totals>(),
                        of<Canberra>(), of<Power>(), of<Entropy>(), of<Chebyshev>()};
    return all[term];
  }
};

}  // namespace

extern "C" {

long gpugrad_lanes(long wide) { return wide ? N<double> : N<float>; }

void gpugrad_distances(
    long wide, const void* x, const void* y, void* out, long m, long n, long k) {
  Job job = {x, y, nullptr, nullptr, out, m, n, k, 0, 0};
  gpugrad_parallel(wide ? distances<double> : distances<float>, &job, (m + ROWS - 1) / ROWS);
}

long gpugrad_all_exact(long wide, const void* d, long n, double least) {
  return wide ? all_exact((const double*)d, n, least) : all_exact((const float*)d, n, (float)least);
}

void gpugrad_distances_gradient(
    long wide, const void* x, const void* y, const void* g, const void* d, void* out, long m,
    long n, long k, long row, long column) {
  Job job = {x, y, g, d, out, m, n, k, row, column};
  gpugrad_parallel(wide ? gradient<double> : gradient<float>, &job, (m + LINES - 1) / LINES);
}

void gpugrad_pair_sums(
    long wide, long term, const void* x, const void* y, void* out, long m, long n, long k,
    double p) {
  Job job = {x, y, nullptr, nullptr, out, m, n, k, 0, 0, p, 0};
  const gpugrad_job run = wide ? Jobs<double>::at(term).sums : Jobs<float>::at(term).sums;
  gpugrad_parallel(run, &job, (m + ROWS - 1) / ROWS);
}

void gpugrad_own_pair_sums(
    long wide, long term, const void* x, const void* y, void* out, long m, long n, long k,
    double p) {
  Job job = {x, y, nullptr, nullptr, out, m, n, k, 0, 0, p, 0};
  gpugrad_parallel(
      wide ? Jobs<double>::at(term).own : Jobs<float>::at(term).own, &job, (m + ROWS - 1) / ROWS);
}

void gpugrad_pair_sums_gradient(
    long wide, long term, long own, const void* x, const void* y, const void* g, void* out, long m,
    long n, long k, long row, long column, long real, double p) {
  Job job = {x, y, g, nullptr, out, m, n, k, row, column, p, real, own};
  const gpugrad_job run = wide ? Jobs<double>::at(term).gradient : Jobs<float>::at(term).gradient;
  gpugrad_parallel(run, &job, (m + LINES - 1) / LINES);
}
}
