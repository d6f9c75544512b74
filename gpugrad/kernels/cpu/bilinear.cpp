// Values of images (channels, height, width) between elements, and the gradients, an image a piece.
// A vector holds the same element of several channels.
#include "lanes.h"
#include "pool.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

namespace {

struct Job {
  const void *x, *places, *g;  // (n, channels, h, w), (n, count, 2), (n, channels, count)
  void *out, *dx, *d_places;
  long channels, h, w, count, zeros;
};

// The four elements around each place: their indices, the number of elements for one outside, and
// how far it is from them. Places are random, so there are no branches.
template <class T> struct Taps {
  std::vector<int> at[4];
  std::vector<T> down, right;
  Taps(const Job& job, const T* places) : down(job.count), right(job.count) {
    const int h = job.h, w = job.w, zeros = job.zeros;
    for (auto& indices : at) indices.resize(job.count);
    int* to[] = {at[0].data(), at[1].data(), at[2].data(), at[3].data()};
    T *y_to = down.data(), *x_to = right.data();
#pragma GCC ivdep
    for (long p = 0; p < job.count; ++p) {
      const T y = std::floor(places[2 * p]), x = std::floor(places[2 * p + 1]);
      y_to[p] = places[2 * p] - y, x_to[p] = places[2 * p + 1] - x;
      for (int k = 0; k < 4; ++k) {
        const int i = int(y) + k / 2, j = int(x) + k % 2;
        const bool row = (i >= 0) & (i < h), column = (j >= 0) & (j < w);
        const int index = (row ? i : h - 1) * w + (column ? j : w - 1);
        to[k][p] = (row & column) | !zeros ? index : h * w;
      }
    }
  }
};

template <class T, int N> struct Block { typedef T type __attribute__((vector_size(sizeof(T) * N))); };
template <class T, int N> using block = typename Block<T, N>::type;

template <class T, int N> std::unique_ptr<block<T, N>[]> vectors(long n) {
  return std::unique_ptr<block<T, N>[]>(new block<T, N>[n]);  // without filling it
}

// The elements of some channels of an image, a vector each, and then zeros.
template <class T, int N> struct Elements {
  const T* x;
  const long size, channels;
  std::unique_ptr<block<T, N>[]> all;  // null if only a few of them are read
  Elements(const T* x, long size, long channels, bool few) : x(x), size(size), channels(channels) {
    if (few) return;
    all = vectors<T, N>(size + 1);
    if (channels < N) memset((void*)all.get(), 0, size * sizeof(block<T, N>));
    transposed(x, size, (T*)all.get(), N, channels, size);
    all[size] = block<T, N>{};
  }
  block<T, N> operator[](long at) const {
    if (all) return all[at];
    block<T, N> v = {};
    for (long k = 0; at < size && k < channels; ++k) v[k] = x[k * size + at];
    return v;
  }
};

template <class T, int N> T total(block<T, N> v) {
  T lanes[N];
  memcpy(lanes, &v, sizeof v);
  for (int half = N / 2; half; half /= 2)
    for (int k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  return lanes[0];
}

template <class T, int N> void sample(void* state, long image) {
  const Job& job = *(Job*)state;
  const Taps<T> taps(job, (const T*)job.places + image * job.count * 2);
  const long size = job.h * job.w;
  const auto values = vectors<T, N>(job.count);
  for (long c = 0; c < job.channels; c += N) {
    const long first = image * job.channels + c, channels = std::min(long(N), job.channels - c);
    const Elements<T, N> x((const T*)job.x + first * size, size, channels, job.count * 4 < size);
    for (long p = 0; p < job.count; ++p) {
      const T y = taps.down[p], z = taps.right[p];
      values[p] = x[taps.at[0][p]] * ((1 - y) * (1 - z)) + x[taps.at[1][p]] * ((1 - y) * z) +
                  x[taps.at[2][p]] * (y * (1 - z)) + x[taps.at[3][p]] * (y * z);
    }
    T* out = (T*)job.out + first * job.count;
    transposed((const T*)values.get(), N, out, job.count, job.count, channels);
  }
}

template <class T, int N> void gradients(void* state, long image) {
  const Job& job = *(Job*)state;
  const Taps<T> taps(job, (const T*)job.places + image * job.count * 2);
  const long size = job.h * job.w;
  T* d_places = (T*)job.d_places + image * job.count * 2;
  for (long p = 0; p < 2 * job.count; ++p) d_places[p] = 0;
  for (long c = 0; c < job.channels; c += N) {
    const long first = image * job.channels + c, channels = std::min(long(N), job.channels - c);
    const Elements<T, N> x((const T*)job.x + first * size, size, channels, job.count * 4 < size);
    const Elements<T, N> g((const T*)job.g + first * job.count, job.count, channels, false);
    const auto dx = vectors<T, N>(size + 1);
    memset((void*)dx.get(), 0, size * sizeof(block<T, N>));
    for (long p = 0; p < job.count; ++p) {
      const T y = taps.down[p], z = taps.right[p];
      const T weights[4] = {(1 - y) * (1 - z), (1 - y) * z, y * (1 - z), y * z};
      const block<T, N> own = g[p];
      block<T, N> v[4];
      for (int k = 0; k < 4; ++k) {
        const long at = taps.at[k][p];
        v[k] = x[at];
        dx[at] += own * weights[k];
      }
      d_places[2 * p] += total<T, N>(own * ((v[2] - v[0]) * (1 - z) + (v[3] - v[1]) * z));
      d_places[2 * p + 1] += total<T, N>(own * ((v[1] - v[0]) * (1 - y) + (v[3] - v[2]) * y));
    }
    transposed((const T*)dx.get(), N, (T*)job.dx + first * size, size, size, channels);
  }
}

const int FEW = 4;  // channels, as of colors, which would fill a small part of a long vector

void run(bool wide, const Job& job, long n, gpugrad_job few[2], gpugrad_job many[2]) {
  gpugrad_parallel((job.channels <= FEW ? few : many)[wide], (void*)&job, n);
}

}  // namespace

extern "C" {

void gpugrad_bilinear(
    long wide, const void* x, const void* places, void* out, long n, long channels, long h, long w,
    long count, long zeros) {
  Job job = {x, places, nullptr, out, nullptr, nullptr, channels, h, w, count, zeros};
  gpugrad_job few[] = {sample<float, FEW>, sample<double, FEW>};
  gpugrad_job many[] = {sample<float, LANES>, sample<double, LANES>};
  run(wide, job, n, few, many);
}

void gpugrad_bilinear_gradients(
    long wide, const void* x, const void* places, const void* g, void* dx, void* d_places, long n,
    long channels, long h, long w, long count, long zeros) {
  Job job = {x, places, g, nullptr, dx, d_places, channels, h, w, count, zeros};
  gpugrad_job few[] = {gradients<float, FEW>, gradients<double, FEW>};
  gpugrad_job many[] = {gradients<float, LANES>, gradients<double, LANES>};
  run(wide, job, n, few, many);
}
}
