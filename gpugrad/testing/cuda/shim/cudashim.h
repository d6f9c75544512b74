// CUDA C++ on the CPU, for tests: one fiber per thread of a block, the blocks one after the other.
//
// A fiber runs until it waits at __syncthreads, __syncwarp or a shuffle. The schedule decides which
// fiber runs next, so that a missing barrier shows in one of the three schedules. Shared memory is
// full of NaN when a block begins. A launch returns null or an error: a deadlock, a barrier after
// some threads have returned, or an access outside the arguments' memory or at a misaligned address.
//
// A fiber in __nanosleep waits for other blocks, which run once its own block can do nothing else.
// That is an error unless the launch is cooperative: a GPU need not run all blocks at a time.
//
// Not modelled: memory ordering, races between blocks, performance.
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __constant__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict
// One block runs at a time, so static storage serves as shared memory; the section locates it. A
// block that waits for others keeps a copy.
#define __shared__ __attribute__((section("shim_shared"))) static
extern char __start_shim_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_shim_shared[] __attribute__((weak, visibility("hidden")));

struct uint3 { unsigned x, y, z; };
struct dim3 : uint3 {
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : uint3{x, y, z} {}
};
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

// What a kernel asks of the runtime in cudashim.cpp, which is compiled once.
namespace shim {

enum Wait { NOWHERE, AT_WARP, AT_BLOCK, ASLEEP };
const unsigned WARP = 32;

// A thread of the block, as kernels see it.
struct Lane {
  uint3 thread;
  unsigned rank = 0;
  bool done = true;
  unsigned long long value = 0;  // what it offers in a shuffle
};

extern Lane* current;
extern uint3 block_index;
extern dim3 block_size, grid_size;
extern unsigned threads;
extern char* dynamic_shared;

Lane& lane_at(unsigned rank);
void wait_at(Wait where, unsigned mask = ~0u);
const char* launch(void (*body)(void**), void** args, const unsigned* size, size_t shared,
                   int schedule, char* first_shared, char* last_shared);

// The shuffle value of lane `source` of the warp; the bits of NaN if there is no such thread.
template <class T>
T exchange(unsigned mask, T value, unsigned source) {
  static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
  Lane* self = current;
  memcpy(&self->value, &value, sizeof(T));
  wait_at(AT_WARP, mask);
  unsigned rank = (self->rank & ~(WARP - 1)) + source;
  unsigned long long bits = ~0ull;
  if (rank < threads && !lane_at(rank).done && (mask >> source & 1)) bits = lane_at(rank).value;
  wait_at(AT_WARP, mask);
  T result;
  memcpy(&result, &bits, sizeof(T));
  return result;
}

// A kernel's arguments from pointers to them, and their sizes.
template <size_t... I> struct Positions {};
template <size_t N, size_t... I> struct Count : Count<N - 1, N - 1, I...> {};
template <size_t... I> struct Count<0, I...> { typedef Positions<I...> positions; };
template <class T> struct Mutable { typedef T type; };
template <class T> struct Mutable<const T> { typedef T type; };
template <class... A, size_t... I>
void call_with(void (*kernel)(A...), void** a, Positions<I...>) {
  kernel(*(typename Mutable<A>::type*)a[I]...);
}
template <class... A> void call(void (*kernel)(A...), void** a) {
  call_with(kernel, a, typename Count<sizeof...(A)>::positions());
}
template <class... A> int sizes(void (*)(A...), size_t* out) {
  size_t each[] = {sizeof(A)..., 0};
  memcpy(out, each, sizeof...(A) * sizeof(size_t));
  return sizeof...(A);
}

inline unsigned lane() { return current->rank % WARP; }

}  // namespace shim

#define threadIdx (shim::current->thread)
#define blockIdx (shim::block_index)
#define blockDim (shim::block_size)
#define gridDim (shim::grid_size)
#define warpSize 32

// ---- barriers, shuffles, votes

inline void __syncthreads() { shim::wait_at(shim::AT_BLOCK); }
inline void __syncwarp(unsigned mask = ~0u) { shim::wait_at(shim::AT_WARP, mask); }
inline void __nanosleep(unsigned) { shim::wait_at(shim::ASLEEP); }
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T> T __shfl_sync(unsigned mask, T v, int source, int width = 32) {
  return shim::exchange(mask, v, (shim::lane() & ~(width - 1)) | (source & (width - 1)));
}
template <class T> T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
  unsigned to = shim::lane() + by, end = (shim::lane() & ~(width - 1)) + width;
  return shim::exchange(mask, v, to < end ? to : shim::lane());
}
template <class T> T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
  unsigned in_segment = shim::lane() & (width - 1);
  return shim::exchange(mask, v, in_segment >= by ? shim::lane() - by : shim::lane());
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int by, int width = 32) {
  unsigned to = shim::lane() ^ by;
  bool inside = (to & ~(width - 1)) <= (shim::lane() & ~(width - 1));
  return shim::exchange(mask, v, inside ? to : shim::lane());
}
inline unsigned __activemask() { return ~0u; }
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  unsigned votes = 0, base = shim::current->rank & ~(shim::WARP - 1);
  shim::current->value = predicate != 0;
  shim::wait_at(shim::AT_WARP, mask);
  for (unsigned k = 0; k < shim::WARP; ++k)
    if ((mask >> k & 1) && base + k < shim::threads && !shim::lane_at(base + k).done)
      votes |= (unsigned)(shim::lane_at(base + k).value & 1) << k;
  shim::wait_at(shim::AT_WARP, mask);
  return votes;
}
inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
inline int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, !p) == 0; }
inline int __syncthreads_or(int p) {
  static int any;
  __syncthreads(), any = 0, __syncthreads(), any |= p != 0, __syncthreads();
  return any;
}

// ---- atomics: no fiber is interrupted within one

template <class T, class U> T atomicAdd(T* p, U v) { T old = *p; *p = T(old + T(v)); return old; }
template <class T, class U> T atomicSub(T* p, U v) { T old = *p; *p = T(old - T(v)); return old; }
template <class T, class U> T atomicExch(T* p, U v) { T old = *p; *p = T(v); return old; }
template <class T, class U> T atomicAnd(T* p, U v) { T old = *p; *p = old & T(v); return old; }
template <class T, class U> T atomicOr(T* p, U v) { T old = *p; *p = old | T(v); return old; }
template <class T, class U> T atomicMax(T* p, U v) {
  T old = *p;
  if (T(v) > old) *p = T(v);
  return old;
}
template <class T, class U> T atomicMin(T* p, U v) {
  T old = *p;
  if (T(v) < old) *p = T(v);
  return old;
}
template <class T, class U, class V> T atomicCAS(T* p, U compare, V v) {
  T old = *p;
  if (old == T(compare)) *p = T(v);
  return old;
}

#include "cuda_math.h"
