// Definitions for every kernel of gpugrad. Prepended to each source before compilation.
#ifndef GPUGRAD_COMMON  // no #pragma: several sources may be compiled as one
#define GPUGRAD_COMMON
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// The type that a kernel computes in: 16-bit floats are storage only.
template <class T> struct computes { typedef T type; };
template <> struct computes<__half> { typedef float type; };
template <> struct computes<__nv_bfloat16> { typedef float type; };
template <class T> using compute_t = typename computes<T>::type;

// N elements that are read or written in one access of 16 bytes if N is 16 / sizeof(T).
template <class T, int N> struct alignas(sizeof(T) * N) Pack {
  T at[N];
};
template <class T> constexpr int PACKED = 16 / sizeof(T);

// x / by for nonnegative numbers, in 32 bits if they fit: a 64-bit division takes several times as long.
__device__ inline long long divided(long long x, long long by) {
  return (x | by) >> 32 ? x / by : (unsigned)x / (unsigned)by;
}

template <class T> __device__ T infinity();
template <> __device__ inline float infinity<float>() { return __int_as_float(0x7F800000); }
template <> __device__ inline double infinity<double>() {
  return __longlong_as_double(0x7FF0000000000000LL);
}

// The values that no number is below, and above.
template <class A> __device__ A lowest() { return -infinity<A>(); }
template <> __device__ inline int lowest<int>() { return -2147483647 - 1; }
template <> __device__ inline long long lowest<long long>() { return -9223372036854775807LL - 1; }
template <class A> __device__ A highest() { return infinity<A>(); }
template <> __device__ inline int highest<int>() { return 2147483647; }
template <> __device__ inline long long highest<long long>() { return 9223372036854775807LL; }

// 1 / sqrt(var + eps) as used by norms: 0 where it would be infinite, NaN if var has overflowed.
template <class C> __device__ C inverse_root(C var, C eps) {
  C s = var + eps;
  if (!(s < infinity<C>())) return s - s;
  return s == 0 ? C(0) : C(1) / sqrt(s);
}

// ---- reductions over a warp and over a block of up to 1024 threads, in a fixed order

struct Sum {
  template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct Max {  // NaN wins
  template <class T> __device__ T operator()(T a, T b) const { return a > b || a != a ? a : b; }
};
struct Min {
  template <class T> __device__ T operator()(T a, T b) const { return a < b || a != a ? a : b; }
};

template <class T, class F> __device__ T warp_reduce(T value, F f) {
#pragma unroll
  for (int by = 16; by; by >>= 1) value = f(value, (T)__shfl_xor_sync(0xFFFFFFFFu, value, by));
  return value;
}

// The reduction over a block of whole warps, returned to all threads. `scratch`: 32 elements of
// shared memory, which may be reused after the call.
template <class T, class F> __device__ T block_reduce(T value, F f, T none, T* scratch) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
  value = warp_reduce(value, f);
  if (warps == 1) return value;
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  value = warp_reduce(lane < warps ? scratch[lane] : none, f);
  __syncthreads();
  return value;
}

// Waits for all blocks of a cooperative launch; what they wrote before, all can read after. The last
// block to arrive flips the top bit of `arrived`, and the other bits are 0 again: so the memory is
// written once, with 0, before its first launch, whatever the sizes of the grids. Launches that may
// run at the same time have memory of their own.
__device__ inline void grid_barrier(unsigned* arrived) {
  __syncthreads();
  if (!(threadIdx.x | threadIdx.y | threadIdx.z)) {
    const unsigned top = 0x80000000u, others = gridDim.x * gridDim.y * gridDim.z - 1;
    bool first = !(blockIdx.x | blockIdx.y | blockIdx.z);
    __threadfence();
    unsigned before = atomicAdd(arrived, first ? top - others : 1u);
    while (!((before ^ *(volatile unsigned*)arrived) & top)) __nanosleep(32);
    __threadfence();
  }
  __syncthreads();
}

// Whether this block is the last of its launch to call this; if so, it can read what the others wrote
// before. Unlike at a barrier no block waits. `arrived` is as for `grid_barrier`, and is left as it was.
__device__ inline bool is_last_block(unsigned* arrived) {
  __shared__ bool last;
  __syncthreads();
  if (!(threadIdx.x | threadIdx.y | threadIdx.z)) {
    const unsigned others = gridDim.x * gridDim.y * gridDim.z - 1;
    __threadfence();
    unsigned before = atomicAdd(arrived, 1u);
    last = (before & 0x7FFFFFFFu) == others;
    if (last) *arrived = before - others;
    __threadfence();
  }
  __syncthreads();
  return last;
}
#endif
