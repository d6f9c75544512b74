// Euclidean distances between all pairs of two sets of vectors, and their gradient, from the
// differences: neither products of vectors, which cancel, nor m * n * k numbers in memory.
#define LIBMVEC 0
#include "vector.h"

#include "pool.h"

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
};

// x is (m, k), y is (k, n) and n a multiple of N; out is (m, n).
template <class T> void distances(void* state, long piece) {
  const Job& job = *(Job*)state;
  const long n = job.n, low = piece * ROWS;
  const T *y = (const T*)job.y, *x[ROWS];
  for (long r = 0; r < ROWS; ++r)
    x[r] = (const T*)job.x + (low + r < job.m ? low + r : low) * job.k;
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

}  // namespace

extern "C" {

long gpugrad_lanes(long wide) { return wide ? N<double> : N<float>; }

void gpugrad_distances(
    long wide, const void* x, const void* y, void* out, long m, long n, long k) {
  Job job = {x, y, nullptr, nullptr, out, m, n, k, 0, 0};
  gpugrad_parallel(wide ? distances<double> : distances<float>, &job, (m + ROWS - 1) / ROWS);
}

void gpugrad_distances_gradient(
    long wide, const void* x, const void* y, const void* g, const void* d, void* out, long m,
    long n, long k, long row, long column) {
  Job job = {x, y, g, d, out, m, n, k, row, column};
  gpugrad_parallel(wide ? gradient<double> : gradient<float>, &job, (m + LINES - 1) / LINES);
}
}
