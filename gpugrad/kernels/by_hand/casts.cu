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

// Arrays (outer, rows, columns), turned to (outer, columns, rows) and converted. Tiles of `tall` rows
// and `wide` columns, at most CHUNK elements, go through shared memory, so that memory is read and
// written in order. `first` is an array's first tile.
constexpr int TURNS = 84;
struct Turns {
  const void* from[TURNS];
  void* to[TURNS];
  int rows[TURNS], columns[TURNS], tall[TURNS], wide[TURNS], first[TURNS];
  int count, tiles;
};

template <class S, class T> __global__ void __launch_bounds__(256) turn(
    const __grid_constant__ Turns turns) {
  __shared__ compute_t<T> held[CHUNK + CHUNK / 32];
  for (int tile = blockIdx.x; tile < turns.tiles; tile += gridDim.x) {
    int low = 0, high = turns.count - 1;
    while (low < high) {
      int middle = (low + high + 1) / 2;
      if (turns.first[middle] <= tile) low = middle;
      else high = middle - 1;
    }
    int rows = turns.rows[low], columns = turns.columns[low];
    int across = (columns + turns.wide[low] - 1) / turns.wide[low];
    int down = (rows + turns.tall[low] - 1) / turns.tall[low];
    int own = tile - turns.first[low], slice = own / (across * down);
    int row = own / across % down * turns.tall[low], column = own % across * turns.wide[low];
    int tall = min(turns.tall[low], rows - row), wide = min(turns.wide[low], columns - column);
    long long start = (long long)slice * rows * columns;
    const S* from = (const S*)turns.from[low] + start + (long long)row * columns + column;
    T* to = (T*)turns.to[low] + start + (long long)column * rows + row;
    auto at = [](int k) { return k + k / 32; };  // padded against conflicts of banks
    constexpr int R = PACKED<S>, W = PACKED<T>;
    int packs = wide == columns && aligned(from) ? tall * wide / R : 0;  // a tile of whole rows
    for (int k = threadIdx.x; k < packs; k += blockDim.x) {
      Pack<S, R> some = ((const Pack<S, R>*)from)[k];
#pragma unroll
      for (int e = 0; e < R; ++e) held[at(k * R + e)] = compute_t<T>(some.at[e]);
    }
    for (int k = packs * R + threadIdx.x; k < tall * wide; k += blockDim.x)
      held[at(k)] = compute_t<T>(from[(long long)(k / wide) * columns + k % wide]);
    __syncthreads();
    if (tall % W == 0 && rows % W == 0 && aligned(to)) {
      for (int k = threadIdx.x; k < tall * wide / W; k += blockDim.x) {
        int r = k % (tall / W) * W, c = k / (tall / W);
        Pack<T, W> some;
#pragma unroll
        for (int e = 0; e < W; ++e) some.at[e] = T(held[at((r + e) * wide + c)]);
        *(Pack<T, W>*)(to + (long long)c * rows + r) = some;
      }
    } else {
      for (int k = threadIdx.x; k < tall * wide; k += blockDim.x)
        to[(long long)(k / tall) * rows + k % tall] = T(held[at(k % tall * wide + k / tall)]);
    }
    __syncthreads();
  }
}
