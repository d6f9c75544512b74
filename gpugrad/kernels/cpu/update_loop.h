// The loop of an optimizer's step over all arrays of a dtype. `gpugrad.kernels.cpu.update_loop` writes
// the rule of an element.
#pragma once

#include "array.h"
#include "pool.h"

#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

// NumPy's functions, also for NaN and -0.0, by the names in CUDA.
static inline float sqrt(float x) { return __builtin_sqrtf(x); }
static inline double sqrt(double x) { return __builtin_sqrt(x); }
static inline float fabs(float x) { return __builtin_fabsf(x); }
static inline double fabs(double x) { return __builtin_fabs(x); }
template <class T> static inline T sign(T x) {
  return x > 0 ? T(1) : x < 0 ? T(-1) : x == 0 ? T(0) : x;
}

static const long PIECE = 1 << 14;  // elements: 10 us

struct Step {
  void* const* arrays;    // NumPy's, those of one Variable after the other
  const double* numbers;  // rows of them
  const long* rows;       // by Variable: its row
  long count;             // of Variables
};

// Piece k of the elements of all Variables, in a row.
template <class Rule, class T> static void piece(void* state, long k) {
  const Step& step = *(Step*)state;
  const int ARRAYS = Rule::ARRAYS, NUMBERS = Rule::NUMBERS;
  long low = k * PIECE, high = low + PIECE, start = 0;
  for (long i = 0; i < step.count && start < high; ++i) {
    void* const* own = step.arrays + i * ARRAYS;
    long n = array_of(own[0]).shape[0];
    long from = low > start ? low - start : 0, to = high - start < n ? high - start : n;
    start += n;
    if (from >= to) continue;
    T *arrays[ARRAYS], numbers[NUMBERS + 1];
    for (int a = 0; a < ARRAYS; ++a) arrays[a] = (T*)array_of(own[a]).data + from;
    const double* row = step.numbers + step.rows[i] * NUMBERS;
    for (int j = 0; j < NUMBERS; ++j) numbers[j] = T(row[j]);
    Rule::run(arrays, numbers, to - from);
  }
}

// Whether an array is flat, contiguous and aligned, and has n elements.
template <class T> static bool plain(const Array& array, long n) {
  if (array.ndim != 1 || array.shape[0] != n || (uintptr_t)array.data % sizeof(T)) return false;
  return n < 2 || array.strides[0] == sizeof(T);
}

// Steps all Variables; false if an array has another layout.
template <class Rule, class T> static bool run_step(const Step& step) {
  long total = 0;
  for (long i = 0; i < step.count; ++i) {
    void* const* own = step.arrays + i * Rule::ARRAYS;
    long n = array_of(own[0]).shape[0];
    for (int a = 0; a < Rule::ARRAYS; ++a)
      if (!plain<T>(array_of(own[a]), n)) return false;
    total += n;
  }
  gpugrad_parallel(piece<Rule, T>, (void*)&step, (total + PIECE - 1) / PIECE);
  return true;
}

#define STEP(name, Rule)                                                                   \
  extern "C" long name(                                                                    \
      long wide, void* const* arrays, const double* numbers, const long* rows, long count) { \
    Step step = {arrays, numbers, rows, count};                                            \
    return wide ? run_step<Rule, double>(step) : run_step<Rule, float>(step);              \
  }
