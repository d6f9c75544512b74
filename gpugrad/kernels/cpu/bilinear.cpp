// Values of images (channels, height, width) between elements, and the gradients, an image a piece.
#include "pool.h"

#include <cmath>
#include <vector>

namespace {

struct Job {
  const void *x, *places, *g;  // (n, channels, h, w), (n, count, 2), (n, channels, count)
  void *out, *dx, *d_places;
  long channels, h, w, count, zeros;
};

// The four elements around each place: indices, -1 for one outside, and how far it is from them.
template <class T> struct Taps {
  std::vector<long> at[4];
  std::vector<T> down, right;
  Taps(const Job& job, const T* places) : down(job.count), right(job.count) {
    for (auto& indices : at) indices.resize(job.count);
    for (long p = 0; p < job.count; ++p) {
      const T y = std::floor(places[2 * p]), x = std::floor(places[2 * p + 1]);
      down[p] = places[2 * p] - y, right[p] = places[2 * p + 1] - x;
      for (int k = 0; k < 4; ++k) at[k][p] = element(job, y + T(k / 2), x + T(k % 2));
    }
  }
  static long element(const Job& job, T y, T x) {
    const bool inside = y >= 0 && y <= T(job.h - 1) && x >= 0 && x <= T(job.w - 1);
    if (!inside && job.zeros) return -1;
    const long row = y >= 0 && y <= T(job.h - 1) ? long(y) : job.h - 1;
    return row * job.w + (x >= 0 && x <= T(job.w - 1) ? long(x) : job.w - 1);
  }
  T value(const T* plane, int k, long p) const { return at[k][p] < 0 ? T(0) : plane[at[k][p]]; }
};

template <class T> void sample(void* state, long image) {
  const Job& job = *(Job*)state;
  const Taps<T> taps(job, (const T*)job.places + image * job.count * 2);
  for (long c = image * job.channels; c < (image + 1) * job.channels; ++c) {
    const T* plane = (const T*)job.x + c * job.h * job.w;
    T* out = (T*)job.out + c * job.count;
    for (long p = 0; p < job.count; ++p) {
      const T y = taps.down[p], x = taps.right[p];
      out[p] = taps.value(plane, 0, p) * ((1 - y) * (1 - x)) +
               taps.value(plane, 1, p) * ((1 - y) * x) +
               taps.value(plane, 2, p) * (y * (1 - x)) + taps.value(plane, 3, p) * (y * x);
    }
  }
}

template <class T> void gradients(void* state, long image) {
  const Job& job = *(Job*)state;
  const Taps<T> taps(job, (const T*)job.places + image * job.count * 2);
  T* d_places = (T*)job.d_places + image * job.count * 2;
  for (long p = 0; p < 2 * job.count; ++p) d_places[p] = 0;
  for (long c = image * job.channels; c < (image + 1) * job.channels; ++c) {
    const T *plane = (const T*)job.x + c * job.h * job.w, *g = (const T*)job.g + c * job.count;
    T* dx = (T*)job.dx + c * job.h * job.w;
    for (long i = 0; i < job.h * job.w; ++i) dx[i] = 0;
    for (long p = 0; p < job.count; ++p) {
      const T y = taps.down[p], x = taps.right[p];
      const T weights[4] = {(1 - y) * (1 - x), (1 - y) * x, y * (1 - x), y * x};
      T v[4];
      for (int k = 0; k < 4; ++k) {
        v[k] = taps.value(plane, k, p);
        if (taps.at[k][p] >= 0) dx[taps.at[k][p]] += g[p] * weights[k];
      }
      d_places[2 * p] += g[p] * ((v[2] - v[0]) * (1 - x) + (v[3] - v[1]) * x);
      d_places[2 * p + 1] += g[p] * ((v[1] - v[0]) * (1 - y) + (v[3] - v[2]) * y);
    }
  }
}

}  // namespace

extern "C" {

void gpugrad_bilinear(
    long wide, const void* x, const void* places, void* out, long n, long channels, long h, long w,
    long count, long zeros) {
  Job job = {x, places, nullptr, out, nullptr, nullptr, channels, h, w, count, zeros};
  gpugrad_parallel(wide ? sample<double> : sample<float>, &job, n);
}

void gpugrad_bilinear_gradients(
    long wide, const void* x, const void* places, const void* g, void* dx, void* d_places, long n,
    long channels, long h, long w, long count, long zeros) {
  Job job = {x, places, g, nullptr, dx, d_places, channels, h, w, count, zeros};
  gpugrad_parallel(wide ? gradients<double> : gradients<float>, &job, n);
}
}
