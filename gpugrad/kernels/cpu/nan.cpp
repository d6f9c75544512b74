// Whether an array has a NaN, which the gradients of each tape are asked.
#include "pool.h"

#include <atomic>

namespace {

const long PIECE = 1 << 16;  // elements of a piece for a thread

struct Job {
  const void* x;
  long n;
  std::atomic<long> nan;
};

template <class T> void piece(void* state, long k) {
  Job& job = *(Job*)state;
  const T* x = (const T*)job.x;
  const long from = k * PIECE, to = from + PIECE < job.n ? from + PIECE : job.n;
  int nan = 0;
  for (long j = from; j < to; ++j) nan |= x[j] != x[j];
  if (nan) job.nan = 1;
}

}  // namespace

extern "C" long gpugrad_has_nan(long wide, const void* x, long n) {
  Job job = {x, n, {0}};
  gpugrad_parallel(wide ? piece<double> : piece<float>, &job, (n + PIECE - 1) / PIECE);
  return job.nan;
}
