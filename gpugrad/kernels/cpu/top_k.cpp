// The k largest elements of each row, in descending order; equal elements keep their order.
#include "pool.h"

#include <atomic>

namespace {

const long PIECE = 1 << 14;  // elements of a piece for a thread
const long BLOCK = 64;  // elements that are compared at once

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

template <class T> void piece(void* state, long number) {
  Job& job = *(Job*)state;
  const long n = job.n, k = job.k, per = (PIECE + n - 1) / n, low = number * per;
  bool nan = false;
  for (long row = low; row < low + per && row < job.rows; ++row) {
    const T* x = (const T*)job.x + row * n;
    Largest<T> largest = {(T*)job.values + row * k, job.indices + row * k, k};
    for (long i = 0; i < n; i += BLOCK) {
      const long count = n - i < BLOCK ? n - i : BLOCK;
      const T least = largest.count < k ? x[i] : largest.values[k - 1];
      bool more = largest.count < k, bad = false;
      for (long j = 0; j < count; ++j) more |= x[i + j] > least, bad |= x[i + j] != x[i + j];
      nan |= bad;
      if (!more || nan) continue;
      for (long j = 0; j < count; ++j)
        if (largest.count < k || x[i + j] > largest.values[k - 1]) largest.insert(x[i + j], i + j);
    }
  }
  if (nan) job.nan = true;
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
