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
#endif
