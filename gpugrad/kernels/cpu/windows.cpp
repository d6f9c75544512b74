// The elements of windows that equal a value: gradients of filters by order share among them.
#include "pool.h"

#include <algorithm>

namespace {

const long SEGMENT = 512;  // elements of a row whose counts stay in the first cache
const long PARTS = 8;

struct Job {
  const void *y, *x, *value;
  void* total;
  const long *starts, *taps;  // of each row's first window in x; of each element from there
  long rows, n, count, split, adjoint;
};

template <class T> void segment(const Job& job, long row, long from, long to) {
  const long n = to - from, start = job.starts[row] + from, at = row * job.n + from;
  const T *x = (const T*)job.x + start, *value = (const T*)job.value + at, *y = (const T*)job.y;
  T hits[SEGMENT], part[SEGMENT];
  for (long j = 0; j < n; ++j) hits[j] = part[j] = 0;
  for (long k = 0; k < job.count; ++k) {
    const T* there = x + job.taps[k];
    for (long j = 0; j < n; ++j) hits[j] += there[j] == value[j] ? T(1) : T(0);
  }
  for (long j = 0; j < n; ++j) hits[j] = hits[j] > 0 ? 1 / hits[j] : 0;
  if (job.adjoint)
    for (long j = 0; j < n; ++j) part[j] = y[at + j] * hits[j];
  for (long k = 0; k < job.count; ++k) {
    const T* there = x + job.taps[k];
    if (job.adjoint) {
      T* to = (T*)job.total + start + job.taps[k];
      for (long j = 0; j < n; ++j) to[j] += there[j] == value[j] ? part[j] : 0;
    } else {
      const T* near = y + start + job.taps[k];
      for (long j = 0; j < n; ++j) part[j] += there[j] == value[j] ? near[j] : 0;
    }
  }
  if (!job.adjoint)
    for (long j = 0; j < n; ++j) ((T*)job.total)[at + j] = part[j] * hits[j];
}

// Piece k of the rows, or of the columns: parts that write to different elements.
template <class T> void piece(void* state, long k) {
  const Job& job = *(Job*)state;
  const long whole = job.split == 2 ? job.n : job.rows;
  const long low = whole * k / PARTS, high = whole * (k + 1) / PARTS;
  const long first = job.split == 2 ? 0 : low, last = job.split == 2 ? job.rows : high;
  const long left = job.split == 2 ? low : 0, right = job.split == 2 ? high : job.n;
  for (long row = first; row < last; ++row)
    for (long j = left; j < right; j += SEGMENT)
      segment<T>(job, row, j, std::min(right, j + SEGMENT));
}

}  // namespace

// Means of y over the elements of each window of x that equal its value; or, if `adjoint`, zeros in
// `total` to which each y is shared out. `split` is 1 or 2 if windows of different rows or columns
// do not overlap, else 0.
extern "C" void gpugrad_tied_windows(
    long wide, const void* y, const void* x, const void* value, void* total, const long* starts,
    const long* taps, long rows, long n, long count, long split, long adjoint) {
  Job job = {y, x, value, total, starts, taps, rows, n, count, split, adjoint};
  void (*run)(void*, long) = wide ? piece<double> : piece<float>;
  if (split) gpugrad_parallel(run, &job, PARTS);
  else
    for (long k = 0; k < PARTS; ++k) run(&job, k);
}
