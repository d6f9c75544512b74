// Rounds many float32 arrays to 16 bits in one launch, as weights for a step in mixed precision. At
// least 6 bytes per element.
#include "tables.cuh"

template <class T> __global__ void __launch_bounds__(256) cast(
    const __grid_constant__ Table<2> table) {
  each_chunk(table, [&](int i, long long start, int n) {
    map_chunk<float>(
        (const float*)table.at[0][i] + start, (T*)table.at[1][i] + start, n,
        [](float a) { return a; });
  });
}
