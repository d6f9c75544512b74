// Whether an array has a NaN, which the gradients of each tape are asked.
#pragma once

#include "strided.h"

#include <atomic>

namespace {

struct NanJob {
  Walk walk;
  std::atomic<bool> nan;
};

template <class T> __attribute__((optimize("O3"))) bool has_nan(const char* line, long n, long step) {
  const long block = 1024;
  for (long from = 0; from < n; from += block) {
    const long to = from + block < n ? from + block : n;
    int nan = 0;  // no branch within the block, so that the compiler writes vectors
    if (step == sizeof(T))
      for (long k = from; k < to; ++k) nan |= ((const T*)line)[k] != ((const T*)line)[k];
    else
      for (long k = from; k < to; ++k) {
        const T x = *(const T*)(line + k * step);
        nan |= x != x;
      }
    if (nan) return true;
  }
  return false;
}

template <class T> void look_at(void* state, long k) {
  NanJob& job = *(NanJob*)state;
  const long step = job.walk.strides[0][job.walk.ndim - 1];
  job.walk.piece(k, [&](char** at, long n) {
    if (has_nan<T>(at[0], n, step)) job.nan = true;
  });
}

// The elements of a broadcast axis are the same: one is enough. Lines are along the smallest stride,
// whatever the order of the axes.
bool has_nan(const Array& a, bool wide) {
  intptr_t shape[AXES];
  for (int d = 0; d < a.ndim; ++d) {
    if (!a.shape[d]) return false;
    shape[d] = a.strides[d] ? a.shape[d] : 1;
  }
  const Array once = {a.data, a.ndim, shape, a.strides}, *arrays[] = {&once};
  NanJob job = {Walk(arrays, 1), {false}};
  gpugrad_parallel(wide ? look_at<double> : look_at<float>, &job, job.walk.pieces());
  return job.nan;
}

}  // namespace
