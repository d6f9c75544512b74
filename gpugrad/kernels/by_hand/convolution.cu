// Convolution and its two gradients as matrix products whose large factor is never stored: its tiles
// are read from the array itself (implicit GEMM). For one group:
//
//   OF       rows      lines              depth              a        x
//   RESULT   filters   examples, places   channels, window   weights  windows of the input
//   INPUT    channels  examples, inside   filters, window    weights  windows of g
//   WEIGHT   filters   channels, window   examples, places   g        windows of the input
//
// The offset of a matrix element is the sum of two parts, for its pixel and for its element of the
// window. Shared memory holds them for the lines and columns of a tile, so elements need no division.
//
// If the depth of WEIGHT is split, each part is summed separately and `convolution_sum` adds the
// parts in order, without atomics. Minimal traffic: RESULT reads a tile of the input once for each
// BM filters and the weights once for each BN places.
#include "mma.cuh"
#include "tiles.cuh"

struct Convolution {
  int examples, groups, channels, filters;  // channels and filters of one group
  int in[3], kernel[3], places[3], stride[3], before[3], dilation[3];
  int inside, window, outside;              // products of in, kernel, places
};

enum Of { RESULT, INPUT, WEIGHT };

struct Part {
  int offset, at[3];
};
const int NOWHERE = 1 << 29;  // an offset outside every array, also if two of them are added

__device__ inline void unravel(int i, const int (&shape)[3], int (&at)[3]) {
  at[2] = i % shape[2], i /= shape[2];
  at[1] = i % shape[1], at[0] = i / shape[1];
}
__device__ inline int ravel(const int (&at)[3], const int (&shape)[3]) {
  return (at[0] * shape[1] + at[1]) * shape[2] + at[2];
}

// Where the window of pixel `i` of all examples begins in x.
template <Of OF> __device__ Part pixel(const Convolution& c, int i) {
  Part p;
  int size = OF == INPUT ? c.inside : c.outside, example = i / size, at[3];
  unravel(i % size, OF == INPUT ? c.in : c.places, at);
#pragma unroll
  for (int k = 0; k < 3; ++k)
    p.at[k] = OF == INPUT ? at[k] + c.before[k] : at[k] * c.stride[k] - c.before[k];
  p.offset = OF == INPUT ? example * c.groups * c.filters * c.outside
                         : example * c.groups * c.channels * c.inside + ravel(p.at, c.in);
  if (example >= c.examples) p.at[0] = OF == INPUT ? -NOWHERE : NOWHERE;
  return p;
}

// The distance of element `i` of all windows from the start of its window.
template <Of OF> __device__ Part element(const Convolution& c, int i) {
  Part p;
  int channel = i / c.window, at[3];
  unravel(i % c.window, c.kernel, at);
#pragma unroll
  for (int k = 0; k < 3; ++k) p.at[k] = at[k] * c.dilation[k];
  p.offset = OF == INPUT ? channel * c.outside : channel * c.inside + ravel(p.at, c.in);
  if (channel >= (OF == INPUT ? c.filters : c.channels)) p.at[0] = NOWHERE;
  return p;
}

template <Of OF, class T> __device__ T value(
    const T* x, const Convolution& c, const Part& pixel, const Part& element) {
  int at = pixel.offset + element.offset;
  if (OF == INPUT) {
    int q[3];
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      int t = pixel.at[k] - element.at[k];
      q[k] = c.stride[k] == 1 ? t : t / c.stride[k];
      if (t < 0 || q[k] >= c.places[k] || q[k] * c.stride[k] != t) return T(0.0f);
    }
    return x[at + ravel(q, c.places)];
  }
#pragma unroll
  for (int k = 0; k < 3; ++k)
    if ((unsigned)(pixel.at[k] + element.at[k]) >= (unsigned)c.in[k]) return T(0.0f);
  return x[at];
}

// The offset of column `i` of `a` within a row; -1 beyond the last.
template <Of OF> __device__ int of_a(const Convolution& c, int i) {
  if (OF == RESULT) return i < c.channels * c.window ? i : -1;
  if (OF == INPUT) {
    int filter = i / c.window;
    return filter < c.filters ? filter * c.channels * c.window + i % c.window : -1;
  }
  int example = i / c.outside;
  return example < c.examples ? example * c.groups * c.filters * c.outside + i % c.outside : -1;
}

// The tiles of one step in registers, between global and shared memory.
template <class E, Of OF> struct Tiles {
  typedef typename E::T T;
  typedef typename E::Held Held;
  static constexpr int N = 16 / sizeof(Held);       // elements per store
  static constexpr int OF_A = E::BM * E::D / E::THREADS, OF_X = E::BN * E::D / E::THREADS;
  static constexpr int AT_ONCE = E::THREADS / E::D; // lines, if threads lie along the columns
  T a[OF_A], x[OF_X];

  __device__ void fetch(
      const T* from_a, int rows, int stride, const T* from_x, const Convolution& c,
      const Part* lines, const Part* columns, const int* offsets) {
    int column = threadIdx.x % E::D, offset = offsets[column];
#pragma unroll
    for (int i = 0; i < OF_A; ++i) {
      int row = threadIdx.x / E::D + i * AT_ONCE;
      a[i] = offset >= 0 && row < rows ? from_a[row * stride + offset] : T(0.0f);
    }
    if (OF == WEIGHT) {  // pixels are columns
      Part own = columns[column];
#pragma unroll
      for (int i = 0; i < OF_X; ++i)
        x[i] = value<OF>(from_x, c, own, lines[threadIdx.x / E::D + i * AT_ONCE]);
    } else {             // pixels are lines
      Part own = lines[threadIdx.x % E::BN];
#pragma unroll
      for (int i = 0; i < OF_X; ++i) {
        int chunk = threadIdx.x / E::BN + i / N * (E::THREADS / E::BN);
        x[i] = value<OF>(from_x, c, own, columns[chunk * N + i % N]);
      }
    }
  }

  __device__ void put(Held* to_a, Held* to_x) const {
    int column = threadIdx.x % E::D, line = threadIdx.x / E::D;
#pragma unroll
    for (int i = 0; i < OF_A; ++i) to_a[(line + i * AT_ONCE) * E::LINE + column] = Held(a[i]);
    if (OF == WEIGHT) {
#pragma unroll
      for (int i = 0; i < OF_X; ++i) to_x[(line + i * AT_ONCE) * E::LINE + column] = Held(x[i]);
    } else {
#pragma unroll
      for (int i = 0; i < OF_X; i += N) {
        int chunk = threadIdx.x / E::BN + i / N * (E::THREADS / E::BN);
        Pack<Held, N> some;
#pragma unroll
        for (int k = 0; k < N; ++k) some.at[k] = Held(x[i + k]);
        *(Pack<Held, N>*)(to_x + threadIdx.x % E::BN * E::LINE + chunk * N) = some;
      }
    }
  }
};

// Grid: tiles of lines, tiles of rows, groups times `splits`. Y is T, or C for parts of a sum.
template <class E, Of OF, class Y>
__global__ void __launch_bounds__(E::THREADS, 1) convolution_product(
    const typename E::T* a, const typename E::T* x, Y* y, Convolution c, int splits) {
  typedef typename E::C C;
  typedef typename E::Held Held;
  extern __shared__ __align__(128) char memory[];
  Part* lines = (Part*)memory;
  Part* columns = lines + E::BN;              // of two steps, as are those that follow
  Held* tiles = (Held*)(columns + 2 * E::D);
  int* offsets = (int*)(tiles + 2 * (E::BM + E::BN) * E::LINE);

  int group = blockIdx.z / splits, split = blockIdx.z % splits;
  int rows = OF == INPUT ? c.channels : c.filters;
  int first_row = blockIdx.y * E::BM, first_line = blockIdx.x * E::BN;
  int depth = OF == WEIGHT ? c.examples * c.outside
                           : (OF == INPUT ? c.filters : c.channels) * c.window;
  int stride = OF == RESULT ? c.channels * c.window : OF == INPUT ? c.window : c.outside;
  a += (long long)group * c.filters * (OF == WEIGHT ? c.outside : c.channels * c.window);
  a += (long long)first_row * stride;
  x += (long long)group * (OF == INPUT ? c.filters * c.outside : c.channels * c.inside);
  int all = (depth + E::D - 1) / E::D, each = (all + splits - 1) / splits;
  int begin = split * each, end = min(all, begin + each);

  auto note = [&](int step) {  // store the column parts of offsets for a step
    if (step >= end || threadIdx.x >= E::D) return;
    int i = step * E::D + threadIdx.x, at = step % 2 * E::D + threadIdx.x;
    columns[at] = OF == WEIGHT ? pixel<OF>(c, i) : element<OF>(c, i);
    offsets[at] = of_a<OF>(c, i);
  };
  for (int i = threadIdx.x; i < E::BN; i += E::THREADS)
    lines[i] = OF == WEIGHT ? element<OF>(c, first_line + i) : pixel<OF>(c, first_line + i);
  note(begin), note(begin + 1);
  __syncthreads();

  C s[E::ROWS][E::COLUMNS] = {};
  Tiles<E, OF> next;
  auto fetch = [&](int step) {
    next.fetch(a, rows - first_row, stride, x, c, lines, columns + step % 2 * E::D,
               offsets + step % 2 * E::D);
  };
  auto tile = [&](int step) { return tiles + step % 2 * (E::BM + E::BN) * E::LINE; };
  if (begin < end) {
    fetch(begin);
    next.put(tile(begin), tile(begin) + E::BM * E::LINE);
  }
  __syncthreads();
  for (int step = begin; step < end; ++step) {
    if (step + 1 < end) fetch(step + 1);
    E::dot(s, tile(step), tile(step) + E::BM * E::LINE);
    if (step + 1 < end) next.put(tile(step + 1), tile(step + 1) + E::BM * E::LINE);
    note(step + 2);
    __syncthreads();
  }

#pragma unroll
  for (int j = 0; j < E::COLUMNS; ++j) {
    int line = first_line + E::column(j), size = OF == INPUT ? c.inside : c.outside;
    long long at;
    if (OF == WEIGHT) {
      if (line >= c.channels * c.window) continue;
      at = ((long long)split * c.groups + group) * rows * (c.channels * c.window) + line;
    } else {
      int example = line / size;
      if (example >= c.examples) continue;
      at = ((long long)example * c.groups + group) * rows * size + line % size;
    }
#pragma unroll
    for (int i = 0; i < E::ROWS; ++i) {
      int row = first_row + E::row(i);
      if (row < rows) y[at + (long long)row * (OF == WEIGHT ? c.channels * c.window : size)]
          = Y(s[i][j]);
    }
  }
}

// y[i] = sum of part[k][i] over k, in order.
template <class T> __global__ void convolution_sum(
    const compute_t<T>* part, T* y, long long n, int parts) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  compute_t<T> sum = 0;
  for (int k = 0; k < parts; ++k) sum += part[k * n + i];
  y[i] = T(sum);
}

// If a group has few channels, as in a depthwise convolution, a matrix product would be mostly
// padding. Here a thread sums one element of RESULT or INPUT, or a block one of WEIGHT.
template <class T, Of OF> __global__ void convolution_direct(
    const T* a, const T* x, T* y, Convolution c) {
  typedef compute_t<T> C;
  int rows = OF == INPUT ? c.channels : c.filters, size = OF == INPUT ? c.inside : c.outside;
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)c.examples * c.groups * rows * size) return;
  int at = i % size, channel = i / size % (c.groups * rows), group = channel / rows;
  Part own = pixel<OF>(c, (int)(i / size / (c.groups * rows)) * size + at);
  x += (long long)group * (OF == INPUT ? c.filters * c.outside : c.channels * c.inside);
  a += (long long)group * c.filters * c.channels * c.window;
  a += (long long)(channel % rows) * (OF == INPUT ? 1 : c.channels) * c.window;
  int depth = (OF == INPUT ? c.filters : c.channels) * c.window;
  C sum = 0;
  for (int e = 0; e < depth; ++e) {
    int of = OF == INPUT ? e / c.window * c.channels * c.window + e % c.window : e;
    sum += C(a[of]) * C(value<OF>(x, c, own, element<OF>(c, e)));
  }
  y[i] = T(sum);
}

template <class T> __global__ void convolution_direct_weight(
    const T* g, const T* x, T* y, Convolution c) {
  typedef compute_t<T> C;
  __shared__ C scratch[32];
  int window = c.channels * c.window, filter = blockIdx.x / window;
  Part own = element<WEIGHT>(c, blockIdx.x % window);
  x += (long long)(filter / c.filters) * c.channels * c.inside;
  g += (long long)filter * c.outside;
  C sum = 0;
  for (int i = threadIdx.x; i < c.examples * c.outside; i += blockDim.x) {
    long long at = (long long)(i / c.outside) * c.groups * c.filters * c.outside + i % c.outside;
    sum += C(g[at]) * C(value<WEIGHT>(x, c, pixel<WEIGHT>(c, i), own));
  }
  sum = block_reduce(sum, Sum(), C(0), scratch);
  if (threadIdx.x == 0) y[blockIdx.x] = T(sum);
}
