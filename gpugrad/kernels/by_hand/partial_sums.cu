// Sums over the rows of many arrays of partial sums in one launch: `parts` rows of `columns` each.
// The rows are added in a fixed order.
#include "tables.cuh"

constexpr int ROWS = 32;  // threads that share a column: one would wait for each load in turn

template <class C, class T> __global__ void __launch_bounds__(32 * ROWS) add_parts(
    const __grid_constant__ Table<2> table, int parts, int columns) {
  __shared__ C held[ROWS][33];
  int tiles = (columns + 31) / 32;
  for (int tile = blockIdx.x; tile < table.count * tiles; tile += gridDim.x) {
    int array = tile / tiles, column = tile % tiles * 32 + threadIdx.x;
    const C* from = (const C*)table.at[0][array];
    C sum = 0;
    if (column < columns)
      for (int part = threadIdx.y; part < parts; part += ROWS)
        sum += from[(long long)part * columns + column];
    held[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
      for (int row = 1; row < ROWS; ++row) sum += held[row][threadIdx.x];
      ((T*)table.at[1][array])[column] = T(sum);
    }
    __syncthreads();
  }
}
