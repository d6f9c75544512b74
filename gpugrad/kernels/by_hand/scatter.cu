// Scatter-add of values into an array of zeros at indices that may repeat, and gather.
//
// Negative indices count from the end. An index that is out of bounds is skipped and reported in
// `outside`. Sums have type compute_t<T>, and the atomics need an array of that type.
//
// Minimal traffic: the values and the index once, and the written part of the result (atomics also
// read it). The zeros are written before.

__device__ inline long long row_of(long long index, long long rows, int* outside) {
  if (index < 0) index += rows;
  if (index >= 0 && index < rows) return index;
  *outside = 1;
  return -1;
}

// N elements in one access if they are aligned, which is the same for all packs of an array.
template <class T, int N> __device__ Pack<T, N> read(const T* from) {
  if ((unsigned long long)from % sizeof(Pack<T, N>) == 0) return *(const Pack<T, N>*)from;
  Pack<T, N> some;
#pragma unroll
  for (int i = 0; i < N; ++i) some.at[i] = from[i];
  return some;
}

// ---- in any order

// out[o, index[k], c] += values[o, k, c], with shapes (outer, rows, width), (outer, n, width).
// A block is (columns, rows); N divides the width.
template <class T, class I, int N>
__global__ void add_rows(
    const T* values, const I* index, compute_t<T>* out, int* outside, long long outer, long long n,
    long long rows, long long width) {
  long long k = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  if (k >= n) return;
  long long row = row_of(index[k], rows, outside);
  if (row < 0) return;
  long long step = (long long)gridDim.y * blockDim.x * N;
  for (long long o = blockIdx.z; o < outer; o += gridDim.z)
    for (long long c = ((long long)blockIdx.y * blockDim.x + threadIdx.x) * N; c < width; c += step) {
      Pack<T, N> some = read<T, N>(values + (o * n + k) * width + c);
      compute_t<T>* to = out + (o * rows + row) * width + c;
#pragma unroll
      for (int i = 0; i < N; ++i) atomicAdd(to + i, compute_t<T>(some.at[i]));
    }
}

// The address of element e of (outer, n, inner) values in the (outer, rows, inner) result.
template <class I>
__device__ long long place_along(
    const I* index, long long e, long long n, long long rows, long long inner, int* outside) {
  long long row = row_of(index[e], rows, outside);
  if (row < 0) return -1;
  long long line = divided(e, inner);
  return (divided(line, n) * rows + row) * inner + e - line * inner;
}

// out[o, index[o, k, i], i] += values[o, k, i].
template <class T, class I>
__global__ void add_along(
    const T* values, const I* index, compute_t<T>* out, int* outside, long long size, long long n,
    long long rows, long long inner) {
  long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= size) return;
  long long at = place_along(index, e, n, rows, inner, outside);
  if (at >= 0) atomicAdd(out + at, compute_t<T>(values[e]));
}

// The same if no index repeats.
template <class T, class I>
__global__ void put_along(
    const T* values, const I* index, T* out, int* outside, long long size, long long n,
    long long rows, long long inner) {
  long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= size) return;
  long long at = place_along(index, e, n, rows, inner, outside);
  if (at >= 0) out[at] = values[e];
}

// The places only, -1 if out of bounds: for `add_sorted` with values of width 1.
template <class I>
__global__ void places_along(
    const I* index, long long* places, int* outside, long long size, long long n, long long rows,
    long long inner) {
  long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (e < size) places[e] = place_along(index, e, n, rows, inner, outside);
}

// The rows of an index, -1 if out of bounds.
template <class I>
__global__ void rows_of(const I* index, long long* found, int* outside, long long n, long long rows) {
  long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) found[k] = row_of(index[k], rows, outside);
}

// ---- in a fixed order

const int TILE = 16;  // sorted positions that one thread adds, in order
const int AHEAD = 8;  // positions that it reads before it adds the first

// The sums of each tile. `order` sorts the rows stably; `sorted` has the rows in that order. The sum
// of a run of equal rows within a tile goes to the result. The sum of a run that continues from the
// previous tile goes to `head`, and of a run that begins here and continues in the next one to
// `tail`. Both have the shape (outer, tiles, width), and `join_tiles` adds them.
template <class T, int N>
__global__ void add_sorted(
    const T* values, const long long* order, const long long* sorted, T* out, compute_t<T>* head,
    compute_t<T>* tail, long long outer, long long n, long long rows, long long width) {
  typedef compute_t<T> A;
  long long tiles = (n + TILE - 1) / TILE;
  long long tile = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  if (tile >= tiles) return;
  long long first = tile * TILE, end = first + TILE < n ? first + TILE : n;
  long long step = (long long)gridDim.y * blockDim.x * N;
  for (long long o = blockIdx.z; o < outer; o += gridDim.z)
    for (long long c = ((long long)blockIdx.y * blockDim.x + threadIdx.x) * N; c < width; c += step) {
      A sum[N];
#pragma unroll
      for (int i = 0; i < N; ++i) sum[i] = 0;
      bool goes_on = first > 0 && sorted[first - 1] == sorted[first];
      for (long long from = first; from < end; from += AHEAD) {
        Pack<T, N> some[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k)
          if (from + k < end) some[k] = read<T, N>(values + (o * n + order[from + k]) * width + c);
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
          long long next = from + k + 1;
          if (next > end) break;
          long long row = sorted[next - 1];
#pragma unroll
          for (int i = 0; i < N; ++i) sum[i] += A(some[k].at[i]);
          bool more = next < n && sorted[next] == row;
          if (more && next < end) continue;
          if (goes_on || more) {
            A* to = (goes_on ? head : tail) + (o * tiles + tile) * width + c;
#pragma unroll
            for (int i = 0; i < N; ++i) to[i] = sum[i];
          } else if (row >= 0) {
            Pack<T, N> made;
#pragma unroll
            for (int i = 0; i < N; ++i) made.at[i] = T(sum[i]);
            *(Pack<T, N>*)(out + (o * rows + row) * width + c) = made;
          }
          goes_on = false;
#pragma unroll
          for (int i = 0; i < N; ++i) sum[i] = 0;
        }
      }
    }
}

// The sums of runs over several tiles: a warp for each tile in which a run begins. Its lanes are
// `columns` columns by 32 / columns parts. Part j adds the heads j, j + parts, ... in order, then
// the parts are added in pairs, and the tail last.
template <class T>
__global__ void join_tiles(
    const long long* sorted, T* out, const compute_t<T>* head, const compute_t<T>* tail,
    long long outer, long long n, long long rows, long long width, int columns) {
  typedef compute_t<T> A;
  long long tiles = (n + TILE - 1) / TILE;
  long long tile = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  if (tile >= tiles) return;
  long long first = tile * TILE, end = first + TILE;
  if (end >= n) return;
  long long row = sorted[end];
  if (row < 0 || sorted[end - 1] != row || (first > 0 && sorted[first - 1] == row)) return;
  int lane = threadIdx.x, parts = 32 / columns, part = lane / columns;
  for (long long o = blockIdx.z; o < outer; o += gridDim.z)
    for (long long at = (long long)blockIdx.y * columns; at < width; at += (long long)gridDim.y * columns) {
      long long c = at + lane % columns;
      A sum = 0;
      if (c < width)
        for (long long t = tile + 1 + part; t < tiles && sorted[t * TILE] == row; t += parts)
          sum += head[(o * tiles + t) * width + c];
      for (int by = 16; by >= columns; by >>= 1) sum += __shfl_down_sync(0xFFFFFFFFu, sum, by);
      if (part == 0 && c < width)
        out[(o * rows + row) * width + c] = T(sum + tail[(o * tiles + tile) * width + c]);
    }
}

// ---- checking

// Whether indices run from first to length - 1.
template <class I>
__global__ void check_range(
    const I* index, int* outside, long long n, long long first, long long length) {
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
    if (index[i] < first || index[i] >= length) *outside = 1;
}

// ---- reading

// The value for an index that is out of bounds: NaN, or 0 for integers.
template <class T> __device__ T nothing() { return T(infinity<compute_t<T>>() * compute_t<T>(0)); }
template <> __device__ inline int nothing<int>() { return 0; }
template <> __device__ inline unsigned long long nothing<unsigned long long>() { return 0; }

// out[o, k, c] = table[o, index[k], c], with shapes (outer, n, width) and (outer, rows, width).
// Blocks as in add_rows. A negative index counts from the end only if `from_end`.
template <class T, class I, int N>
__global__ void read_rows(
    const T* table, const I* index, T* out, int* outside, long long outer, long long n,
    long long rows, long long width, int from_end) {
  long long k = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  if (k >= n) return;
  long long row = index[k] < 0 && !from_end ? rows : index[k];
  row = row_of(row, rows, outside);
  long long step = (long long)gridDim.y * blockDim.x * N;
  for (long long o = blockIdx.z; o < outer; o += gridDim.z)
    for (long long c = ((long long)blockIdx.y * blockDim.x + threadIdx.x) * N; c < width; c += step) {
      Pack<T, N> some;
      if (row >= 0) {
        some = read<T, N>(table + (o * rows + row) * width + c);
      } else {
#pragma unroll
        for (int i = 0; i < N; ++i) some.at[i] = nothing<T>();
      }
      *(Pack<T, N>*)(out + (o * n + k) * width + c) = some;
    }
}

// out[o, k, i] = values[o, index[o, k, i], i], with shapes (outer, n, inner), (outer, rows, inner).
template <class T, class I>
__global__ void read_along(
    const T* values, const I* index, T* out, int* outside, long long size, long long n,
    long long rows, long long inner) {
  long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= size) return;
  long long at = place_along(index, e, n, rows, inner, outside);
  out[e] = at >= 0 ? values[at] : nothing<T>();
}

// Overwrites sums with NaN if an index was out of bounds, in a CUDA graph where the host cannot check.
template <class T> __global__ void spoil(T* out, const int* outside, long long n) {
  if (!*outside) return;
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
    out[i] = nothing<T>();
}
