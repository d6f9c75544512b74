// NumPy's own loops on pieces of large arrays, so that results have its bits.
#include "strided.h"

#include <atomic>
#include <cfenv>

namespace {

// The type of a loop of a ufunc: it needs no lock for floats.
typedef void (*Loop)(char** arrays, const intptr_t* n, const intptr_t* steps, void* data);

struct Job {
  Walk walk;
  Loop loop;
  void* data;
  std::atomic<int> raised;
};

void piece(void* state, long k) {
  Job& job = *(Job*)state;
  const Walk& w = job.walk;
  intptr_t steps[ARRAYS];
  for (int a = 0; a < w.count; ++a) steps[a] = w.strides[a][w.ndim - 1];
  std::feclearexcept(FE_ALL_EXCEPT);
  w.piece(k, [&](char** at, intptr_t n) { job.loop(at, &n, steps, job.data); });
  const int raised = std::fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID);
  if (raised) job.raised |= raised;
}

}  // namespace

// The loop on one or two arrays and the result, to which they broadcast. Returns what it raised:
// 1 for a division by zero, 2 an overflow, 4 an underflow, 8 an invalid value.
extern "C" long gpugrad_ufunc(void* loop, void* data, long count, void* a, void* b, void* out) {
  void* arrays[] = {a, count == 3 ? b : out, out};
  Job job = {Walk(arrays, count), (Loop)loop, data, {0}};
  gpugrad_parallel(piece, &job, job.walk.pieces());
  const int raised = job.raised;
  return !!(raised & FE_DIVBYZERO) | !!(raised & FE_OVERFLOW) << 1 | !!(raised & FE_UNDERFLOW) << 2 |
         !!(raised & FE_INVALID) << 3;
}
