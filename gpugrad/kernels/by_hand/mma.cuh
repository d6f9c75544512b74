// Tensor core instructions as PTX for sm_80 and later; gpugrad/testing/cuda/shim/tensor_cores.h has
// the same functions for the CPU. T is __half or __nv_bfloat16.
#pragma once
#ifdef __CUDACC_RTC__
#if __CUDA_ARCH__ >= 800
#define PTX(...) asm(__VA_ARGS__)
#define PTX_MEMORY(...) asm volatile(__VA_ARGS__ : "memory")
#else  // compiles, so that all architectures share one list of kernels; no launcher runs it
#define PTX(...) __trap()
#define PTX_MEMORY(...) __trap()
#endif

// Two numbers as 16-bit floats in one register, the first in the low half.
template <class T> __device__ unsigned packed(float low, float high);
template <> __device__ inline unsigned packed<__half>(float low, float high) {
  unsigned r;
  PTX("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
template <> __device__ inline unsigned packed<__nv_bfloat16>(float low, float high) {
  unsigned r;
  PTX("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

// c += a b for a 16 x 8 tile of c and 16 steps. In lane 4 g + t, c0 and c1 are (g, 2 t) and
// (g, 2 t + 1), c2 and c3 are eight rows below; a0 has (g, 2 t .. 2 t + 1), a1 is eight rows below,
// a2 and a3 are eight columns to the right; b0 has (2 t .. 2 t + 1, g), b1 is eight rows below.
template <class T> __device__ void mma_16816(
    float& c0, float& c1, float& c2, float& c3, const unsigned (&a)[4], unsigned b0, unsigned b1);
#define MMA(T, name)                                                                              \
  template <> __device__ inline void mma_16816<T>(                                                \
      float& c0, float& c1, float& c2, float& c3, const unsigned (&a)[4], unsigned b0,            \
      unsigned b1) {                                                                              \
    PTX("mma.sync.aligned.m16n8k16.row.col.f32." name "." name                                    \
        ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                    \
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)                                                  \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                          \
  }
MMA(__half, "f16")
MMA(__nv_bfloat16, "bf16")
#undef MMA

// Loads four 8 x 8 tiles from shared memory: lane 8 i + j passes the start of row j of tile i, and
// lane 4 g + t gets (g, 2 t .. 2 t + 1) of each tile, or of its transpose.
__device__ inline void load_tiles(unsigned (&r)[4], const void* row) {
  PTX_MEMORY("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
             : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
             : "r"((unsigned)__cvta_generic_to_shared(row)));
}
__device__ inline void load_tiles_transposed(unsigned (&r)[4], const void* row) {
  PTX_MEMORY("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
             : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
             : "r"((unsigned)__cvta_generic_to_shared(row)));
}

// Starts a copy of 16 bytes to shared memory; writes zeros if the source is not valid.
__device__ inline void copy_async(void* to, const void* from, bool there) {
  PTX_MEMORY("cp.async.cg.shared.global [%0], [%1], 16, %2;"
             :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(there ? 16 : 0));
}
// Waits for this thread's copies; other threads see them after the next barrier.
__device__ inline void copies_arrived() { PTX_MEMORY("cp.async.wait_all;" ::); }

#else
#include "tensor_cores.h"
#endif
