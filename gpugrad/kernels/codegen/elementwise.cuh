// Definitions for every generated kernel.
#ifndef GPUGRAD_ELEMENTWISE
#define GPUGRAD_ELEMENTWISE

// N elements that are read or written together, in accesses of up to 16 bytes.
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Few {
  T at[N];
};

// The reduction over the threads of a row, returned to all of them: one of several warps of a block,
// or the whole block.
template <int THREADS, class A, class F>
__device__ inline A row_reduce(A value, F f, A none, double2* scratch) {
  if (THREADS <= 32) return warp_reduce(value, f);
  return block_reduce(value, f, none, (A*)scratch);
}

// Writes the sums over a block of what its threads have summed: each a pack of columns, for some rows.
template <int WIDE, int TALL, int PACK, class A, class T>
__device__ inline void fold_columns(const A* f, T* out, bool inside, double2* memory) {
  A(*scratch)[WIDE * PACK] = (A(*)[WIDE * PACK])memory;
#pragma unroll
  for (int k = 0; k < PACK; ++k) scratch[threadIdx.y][threadIdx.x * PACK + k] = f[k];
  __syncthreads();
  for (int k = threadIdx.y; k < PACK && inside; k += TALL) {
    A sum = (A)0;
    for (int y = 0; y < TALL; ++y) sum += scratch[y][threadIdx.x * PACK + k];
    out[k] = (T)sum;
  }
  __syncthreads();
}

// Sums of `splits` partial results: a warp computes each sum if there are few, otherwise a thread.
template <class A, class T, bool FEW>
__global__ void fold_partials(const A* __restrict__ part, T* __restrict__ out, int splits,
                              long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  int from = FEW ? i & 31 : 0, by = FEW ? 32 : 1;
  i = FEW ? i >> 5 : i;
  if (i >= n) return;
  A sum = A(0);
#pragma unroll 4
  for (int k = from; k < splits; k += by) sum += part[k * n + i];
  if (FEW) sum = warp_reduce(sum, Sum());
  if (from == 0) out[i] = T(sum);
}

// The second kernel of sums over rows: adds up `parts` rows of n partial sums in a fixed order, and
// divides by `count`. 32 threads share a column: one would wait for each load in turn.
template <class A, class T>
__device__ inline void end_columns(const A* __restrict__ part, T* __restrict__ out, int parts,
                                   A count, int n, A (*held)[33]) {
  for (int start = blockIdx.x * 32; start < n; start += gridDim.x * 32) {
    int j = start + threadIdx.x;
    A sum = 0;
    if (j < n)
      for (int k = threadIdx.y; k < parts; k += 32) sum += part[(long long)k * n + j];
    held[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && j < n) {
      for (int k = 1; k < 32; ++k) sum += held[k][threadIdx.x];
      out[j] = T(sum / count);
    }
    __syncthreads();
  }
}

// The same for a sum of all elements: a warp adds up one partial sum of each block.
template <class A, class T>
__device__ inline void end_all(const A* __restrict__ part, T* __restrict__ out, int parts,
                               A count) {
  if (blockIdx.x || threadIdx.y) return;
  A sum = 0;
  for (int k = threadIdx.x; k < parts; k += 32) sum += part[k];
  sum = warp_reduce(sum, Sum());
  if (threadIdx.x == 0) out[0] = T(sum / count);
}
#endif
