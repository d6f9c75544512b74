// Arrays of 32 bits rounded to 16, all in one launch: weights for a step in mixed precision. The
// floor is 6 bytes an element.
#include "tables.cuh"

template <class T> __global__ void __launch_bounds__(256) cast(
    const __grid_constant__ Table<2> table) {
  each_chunk(table, [&](int i, long long start, int n) {
    map_chunk<float>(
        (const float*)table.at[0][i] + start, (T*)table.at[1][i] + start, n,
        [](float a) { return a; });
  });
}
