// float32 to float16 and back, with NumPy's bits but for those of NaN: see halves.py.
#include "pool.h"

#include <cstdint>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace {

const long PIECE = 1 << 15;

struct Cast {
  const void* from;
  void* to;
  long n, narrow;
};

void cast(void* state, long k) {
  const Cast& job = *(Cast*)state;
  const long low = k * PIECE, high = low + PIECE < job.n ? low + PIECE : job.n;
  const float* wide = (const float*)(job.narrow ? job.from : job.to);
  const uint16_t* half = (const uint16_t*)(job.narrow ? job.to : job.from);
#if defined(__F16C__)
  long i = low;
  for (; i + 8 <= high; i += 8)
    if (job.narrow)
      _mm_storeu_si128((__m128i*)(half + i), _mm256_cvtps_ph(_mm256_loadu_ps(wide + i), 0));
    else
      _mm256_storeu_ps((float*)(wide + i), _mm256_cvtph_ps(_mm_loadu_si128((__m128i*)(half + i))));
  for (; i < high; ++i)
    if (job.narrow) ((uint16_t*)half)[i] = _cvtss_sh(wide[i], 0);
    else ((float*)wide)[i] = _cvtsh_ss(half[i]);
#else
  (void)low, (void)high, (void)wide, (void)half;
#endif
}

}  // namespace

extern "C" {

// 1 if the processor has instructions for this.
long gpugrad_has_halves() {
#if defined(__F16C__)
  return 1;
#else
  return 0;
#endif
}

void gpugrad_cast(long narrow, const void* from, void* to, long n) {
  Cast job = {from, to, n, narrow};
  gpugrad_parallel(cast, &job, (n + PIECE - 1) / PIECE);
}
}
