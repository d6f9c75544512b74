// Arrays of 32 bits rounded to 16, all in one launch: weights for a step in mixed precision. The
// floor is 6 bytes an element.
#include "tables.cuh"

template <class T> __global__ void __launch_bounds__(256) cast(
    const __grid_constant__ Table<2> table) {
  constexpr int W = PACKED<T>;
  each_chunk(table, [&](int i, long long start, int n) {
    const float* from = (const float*)table.at[0][i] + start;
    T* to = (T*)table.at[1][i] + start;
    int whole = aligned(from, to) ? n / W * W : 0;
    for (int k = threadIdx.x * W; k < whole; k += blockDim.x * W) {
      float a[W];
      load<W>(from + k, a);
      store<W>(a, to + k);
    }
    for (int k = whole + threadIdx.x; k < n; k += blockDim.x) to[k] = T(from[k]);
  });
}
