// The k largest elements of each row, in descending order; equal elements keep their order. The k-th
// largest maximum of some parts of the row is a bound that few other elements reach.
#include "pool.h"

#include <atomic>
#include <cstring>

namespace {

const long PIECE = 1 << 14;  // elements of a piece for a thread
const long BLOCK = 64;  // elements that are compared with the bound at once

struct Job {
  const void* x;
  void* values;
  long *indices, rows, n, k;
  std::atomic<bool> nan;
};

// The k largest so far; `count` of them are there.
template <class T> struct Largest {
  T* values;
  long *indices, k, count = 0;
  void insert(T x, long i) {
    long at = count < k ? count++ : k - 1;
    for (; at > 0 && values[at - 1] < x; --at)
      values[at] = values[at - 1], indices[at] = indices[at - 1];
    values[at] = x, indices[at] = i;
  }
};

// A number that at least k elements reach: the k-th largest maximum of as many parts as LANES times
// VECTORS. False if there is a NaN.
template <long VECTORS, class T> bool bound(const T* x, long n, long k, T& least) {
  constexpr long LANES = 64 / sizeof(T), PARTS = LANES * VECTORS;
  typedef T Lanes __attribute__((vector_size(64)));
  typedef decltype(Lanes() > Lanes()) Mask;
  Lanes largest[VECTORS], y;
  Mask nan = {}, above[VECTORS] = {};
  memcpy(largest, x, sizeof largest);
  for (long i = 0; i + PARTS <= n; i += PARTS)
    for (long v = 0; v < VECTORS; ++v) {
      memcpy(&y, x + i + v * LANES, sizeof y);
      nan |= y != y;
      largest[v] = y > largest[v] ? y : largest[v];
    }
  bool good = true;
  for (long i = n - n % PARTS; i < n; ++i) good &= x[i] == x[i];
  for (long part = 0; part < PARTS; ++part)
    for (long v = 0; v < VECTORS; ++v)
      above[v] -= largest[part / LANES][part % LANES] > largest[v];
  bool first = true;
  for (long part = 0; part < PARTS; ++part) {
    const T other = largest[part / LANES][part % LANES];
    good &= !nan[part % LANES];
    if (above[part / LANES][part % LANES] < k && (first || other < least))
      least = other, first = false;
  }
  return good;
}

template <class T> bool bound(const T* x, long n, long k, T& least) {
  if (k <= 8 && n >= 16) return bound<sizeof(T) / 4>(x, n, k, least);
  if (k <= 32 && n >= 64) return bound<sizeof(T)>(x, n, k, least);
  if (n >= 128) return bound<sizeof(T) * 2>(x, n, k, least);
  bool nan = false;
  least = x[0];
  for (long i = 0; i < n; ++i) nan |= x[i] != x[i], least = x[i] < least ? x[i] : least;
  return !nan;
}

template <class T> void piece(void* state, long number) {
  Job& job = *(Job*)state;
  const long n = job.n, k = job.k, per = (PIECE + n - 1) / n, low = number * per;
  for (long row = low; row < low + per && row < job.rows; ++row) {
    const T* x = (const T*)job.x + row * n;
    Largest<T> largest = {(T*)job.values + row * k, job.indices + row * k, k};
    T least;
    if (!bound(x, n, k, least)) {
      job.nan = true;
      return;
    }
    for (long i = 0; i < n; i += BLOCK) {
      const long count = n - i < BLOCK ? n - i : BLOCK;
      long reach[BLOCK], some = 0;  // without a branch, which would be hard to predict
      for (long j = 0; j < count; ++j) reach[some] = i + j, some += x[i + j] >= least;
      for (long c = 0; c < some; ++c)
        if (largest.count < k || x[reach[c]] > largest.values[k - 1])
          largest.insert(x[reach[c]], reach[c]);
    }
  }
}

}  // namespace

// Returns whether there is no NaN; if there is one, the results are of no use.
extern "C" long gpugrad_top_k(
    long wide, const void* x, void* values, long* indices, long rows, long n, long k) {
  Job job = {x, values, indices, rows, n, k, {false}};
  const long per = (PIECE + n - 1) / n;
  gpugrad_parallel(wide ? piece<double> : piece<float>, &job, (rows + per - 1) / per);
  return !job.nan;
}
