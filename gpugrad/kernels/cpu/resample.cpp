// Weighted sums of a few elements each along an axis: arrays (outer, n, inner) to (outer, m, inner).
// Sums are in NumPy's order. Lines of single elements are computed LANES at a time, transposed.
#include "lanes.h"
#include "pool.h"

#include <vector>

namespace {

const long PIECE = 1 << 14;  // elements of a piece for a thread, at least
const long TOGETHER = 4;  // elements of a sum that are added before it is stored

struct Job {
  const void* x;
  void* out;
  const long* index;  // (taps, m)
  const void* weights;  // (taps, m)
  long taps, outer, n, m, inner, step;  // `step`: lines or tiles in a piece
};

template <class T> struct Block { typedef T type __attribute__((vector_size(sizeof(T) * LANES))); };
template <class T> using block = typename Block<T>::type;

// The elements that result j reads, at most TOGETHER from tap t on, and how many these are. Elements
// of weight 0 are not read, since they may be infinite.
template <class T> struct Terms {
  const T* from[TOGETHER];
  T weight[TOGETHER];
  long count = 0;
  Terms(const Job& job, const T* x, long size, long j, long& t) {
    for (; t < job.taps && count < TOGETHER; ++t) {
      const T w = ((const T*)job.weights)[t * job.m + j];
      if (w == 0) continue;
      from[count] = x + job.index[t * job.m + j] * size, weight[count++] = w;
    }
  }
};

// out = the sum of COUNT terms, or with it; VECTOR is T or a block of it.
template <class T, class VECTOR, bool MORE, int COUNT>
inline void add_terms(const Terms<T>& terms, T* out, long size) {
  T weight[COUNT + 1];
  const T* from[COUNT + 1];
  for (int i = 0; i < COUNT; ++i) weight[i] = terms.weight[i], from[i] = terms.from[i];
  const long step = sizeof(VECTOR) / sizeof(T);
#pragma GCC ivdep
  for (long k = 0; k < size; k += step) {
    VECTOR sum = MORE ? *(VECTOR*)(out + k) : VECTOR{};
    for (int i = 0; i < COUNT; ++i) {
      const VECTOR term = *(const VECTOR*)(from[i] + k) * weight[i];
      sum = MORE || i ? sum + term : term;
    }
    *(VECTOR*)(out + k) = sum;
  }
}

template <class T, class VECTOR, bool MORE> void add(const Terms<T>& terms, T* out, long size) {
  switch (terms.count) {
    case 0: return add_terms<T, VECTOR, MORE, 0>(terms, out, size);
    case 1: return add_terms<T, VECTOR, MORE, 1>(terms, out, size);
    case 2: return add_terms<T, VECTOR, MORE, 2>(terms, out, size);
    case 3: return add_terms<T, VECTOR, MORE, 3>(terms, out, size);
    default: return add_terms<T, VECTOR, MORE, 4>(terms, out, size);
  }
}

// Result j, of elements that are lines of `size` numbers.
template <class T, class VECTOR> void result(const Job& job, const T* x, T* out, long size, long j) {
  long t = 0;
  add<T, VECTOR, false>(Terms<T>(job, x, size, j, t), out, size);
  while (t < job.taps) add<T, VECTOR, true>(Terms<T>(job, x, size, j, t), out, size);
}

template <class T> void lines(void* state, long k) {
  const Job& job = *(Job*)state;
  const long all = job.outer * job.m, low = k * job.step;
  const long high = low + job.step < all ? low + job.step : all;
  for (long i = low; i < high; ++i) {
    const T* x = (const T*)job.x + i / job.m * job.n * job.inner;
    result<T, T>(job, x, (T*)job.out + i * job.inner, job.inner, i % job.m);
  }
}

template <class T> void tiles(void* state, long k) {
  const Job& job = *(Job*)state;
  std::vector<block<T>> before(job.n), after(job.m);  // aligned as blocks are
  T *from = (T*)before.data(), *to = (T*)after.data();
  for (long tile = k * job.step; tile < (k + 1) * job.step && tile * LANES < job.outer; ++tile) {
    const long row = tile * LANES, rows = job.outer - row < LANES ? job.outer - row : LANES;
    transposed((const T*)job.x + row * job.n, job.n, from, LANES, rows, job.n);
    for (long j = 0; j < job.m; ++j)
      result<T, block<T>>(job, from, to + j * LANES, LANES, j);
    transposed(to, LANES, (T*)job.out + row * job.m, job.m, job.m, rows);
  }
}

template <class T> void run(Job& job) {
  const bool tiled = job.inner == 1 && job.outer >= LANES;  // of fewer rows a tile is larger than all
  const long longer = job.n > job.m ? job.n : job.m;
  const long size = tiled ? longer * LANES : job.inner;
  const long pieces = tiled ? (job.outer + LANES - 1) / LANES : job.outer * job.m;
  job.step = (PIECE + size - 1) / size;
  gpugrad_parallel(tiled ? tiles<T> : lines<T>, &job, (pieces + job.step - 1) / job.step);
}

}  // namespace

extern "C" void gpugrad_resample(
    long wide, const void* x, void* out, const long* index, const void* weights, long taps,
    long outer, long n, long m, long inner) {
  Job job = {x, out, index, weights, taps, outer, n, m, inner, 0};
  wide ? run<double>(job) : run<float>(job);
}
