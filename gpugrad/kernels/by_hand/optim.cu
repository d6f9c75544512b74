// Norms of gradients, and whether they are finite, over many arrays in one launch.
#include "tables.cuh"

// The sum of squares of each block's chunks of numbers in type A. The squares are doubles: those of
// floats overflow from 1e19 on. Reading the gradients takes longer than adding doubles.
template <class T, class A> __global__ void __launch_bounds__(256) squares(
    const __grid_constant__ Table<1> table, double* sums) {
  constexpr int W = PACKED<T>;
  __shared__ double scratch[32];
  double sum = 0;
  each_chunk(table, [&](int i, long long start, int n) {
    const T* g = (const T*)table.at[0][i] + start;
    int whole = aligned(g) ? n / W * W : 0;
    for (int k = threadIdx.x * W; k < whole; k += blockDim.x * W) {
      A a[W];
      load<W>(g + k, a);
#pragma unroll
      for (int j = 0; j < W; ++j) sum += double(a[j]) * double(a[j]);
    }
    for (int k = whole + threadIdx.x; k < n; k += blockDim.x) {
      double a = double(A(g[k]));
      sum += a * a;
    }
  });
  sum = block_reduce(sum, Sum(), 0.0, scratch);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Scales gradients so that their norm is at most max_norm, and writes the norm. Every block adds up
// all partial sums, which are few, in the same order, so the scale needs no launch of its own.
template <class T, class A> __global__ void __launch_bounds__(256) clip(
    const __grid_constant__ Table<2> table, const double* sums, int n_sums, A max_norm, A* norm) {
  __shared__ double scratch[32];
  double sum = 0;
  for (int k = threadIdx.x; k < n_sums; k += blockDim.x) sum += sums[k];
  A size = A(sqrt(block_reduce(sum, Sum(), 0.0, scratch)));
  A scale = size < infinity<A>() ? (size > max_norm ? max_norm / size : A(1)) : size - size;
  if (blockIdx.x == 0 && threadIdx.x == 0) *norm = size;
  each_chunk(table, [&](int i, long long start, int n) {
    map_chunk<A>(
        (const T*)table.at[0][i] + start, (T*)table.at[1][i] + start, n,
        [&](A a) { return a * scale; });
  });
}

// Writes 1 to `broken` if an element is infinite or NaN; all threads write the same value.
template <class T> __global__ void __launch_bounds__(256) find_broken(
    const __grid_constant__ Table<1> table, int* broken) {
  typedef compute_t<T> S;
  constexpr int W = PACKED<T>;
  bool found = false;
  each_chunk(table, [&](int i, long long start, int n) {
    const T* g = (const T*)table.at[0][i] + start;
    int whole = aligned(g) ? n / W * W : 0;
    for (int k = threadIdx.x * W; k < whole; k += blockDim.x * W) {
      S a[W];
      load<W>(g + k, a);
#pragma unroll
      for (int j = 0; j < W; ++j) found |= !(a[j] - a[j] == S(0));
    }
    for (int k = whole + threadIdx.x; k < n; k += blockDim.x)
      found |= !(S(g[k]) - S(g[k]) == S(0));
  });
  if (found) *broken = 1;
}
