// Products of the elements of two dense arrays at the places of a sparse matrix in CSR form.
#include "pool.h"

#include <algorithm>

namespace {

const long ROWS = 1024;  // of a piece for a thread

struct Job {
  const void *x, *y, *indices, *indptr;
  void* out;
  long rows, k;
};

// out[p] = the sum of x[i, c] y[j, c] over c, for each entry p in row i and column j.
template <class T, class I> void sampled(void* state, long piece) {
  const Job& job = *(Job*)state;
  const I *columns = (const I*)job.indices, *starts = (const I*)job.indptr;
  const long k = job.k, high = std::min((piece + 1) * ROWS, job.rows);
  T* out = (T*)job.out;
  for (long i = piece * ROWS; i < high; ++i) {
    const T *x = (const T*)job.x + i * k, *y = (const T*)job.y;
    for (long p = starts[i]; p < starts[i + 1]; ++p) {
      if (k == 1) {
        out[p] = x[0] * y[columns[p]];
        continue;
      }
      const T* there = y + columns[p] * k;
      T sum = 0;
      for (long c = 0; c < k; ++c) sum += x[c] * there[c];
      out[p] = sum;
    }
  }
}

template <class T> gpugrad_job of(long long_index) {
  return long_index ? sampled<T, long long> : sampled<T, int>;
}

}  // namespace

extern "C" void gpugrad_sampled(
    long wide, long long_index, const void* x, const void* y, const void* indices,
    const void* indptr, void* out, long rows, long k) {
  Job job = {x, y, indices, indptr, out, rows, k};
  gpugrad_parallel(wide ? of<double>(long_index) : of<float>(long_index), &job,
                   (rows + ROWS - 1) / ROWS);
}
