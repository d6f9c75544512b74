// Complex numbers over their absolute values, times real numbers: the gradient of an absolute value.
#include "pool.h"

#include <cmath>

namespace {

const long PIECE = 1 << 14;  // elements of a piece for a thread

struct Job {
  const void *g, *x;
  void* out;
  long n;
};

template <class T> void scaled_phases(void* state, long k) {
  const Job& job = *(Job*)state;
  const T *g = (const T*)job.g, *x = (const T*)job.x;
  T* out = (T*)job.out;
  const long to = (k + 1) * PIECE < job.n ? (k + 1) * PIECE : job.n;
  for (long i = k * PIECE; i < to; ++i) {
    const T a = std::abs(x[2 * i]), b = std::abs(x[2 * i + 1]), most = a > b ? a : b;
    const T scale = most == 0 ? T(1) : most;  // so that no square overflows
    const T re = x[2 * i] / scale, im = x[2 * i + 1] / scale, size = std::sqrt(re * re + im * im);
    const T divisor = most == 0 ? T(1) : size;
    out[2 * i] = re / divisor * g[i], out[2 * i + 1] = im / divisor * g[i];
  }
}

}  // namespace

extern "C" void gpugrad_scaled_phases(
    long wide, const void* g, const void* x, void* out, long n) {
  Job job = {g, x, out, n};
  const long pieces = (n + PIECE - 1) / PIECE;
  gpugrad_parallel(wide ? scaled_phases<double> : scaled_phases<float>, &job, pieces);
}
