// CUDA C++ on the CPU, for tests: one fiber per thread of a block, the blocks one after the other.
//
// A fiber runs until it waits at __syncthreads, __syncwarp or a shuffle. The schedule decides which
// fiber runs next, so that a missing barrier shows in one of the three schedules. Shared memory is
// full of NaN when a block begins. A launch returns null or an error: a deadlock, a barrier after
// some threads have returned, or an access outside the arguments' memory.
//
// Not modelled: memory ordering, races between blocks, performance.
#pragma once
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict
// One block runs at a time, so static storage serves as shared memory; the section locates it.
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

namespace shim {

enum Wait { NOWHERE, AT_WARP, AT_BLOCK };
enum Schedule { ROUND_ROBIN, WARP_BY_WARP, BACKWARDS };
const unsigned WARP = 32;
const size_t STACK = 64 * 1024;

#if defined(__x86_64__)
struct Context { void* top = nullptr; };
extern "C" void shim_switch(void** save, void* load);
asm(R"(
.text
.weak shim_switch
.type shim_switch, @function
shim_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
)");
inline void go(Context& from, Context& to) { shim_switch(&from.top, to.top); }
inline void begin(Context& c, char* stack, void (*entry)()) {
  void** top = (void**)(stack + STACK - 64);
  *--top = nullptr;  // entry's return address, which keeps its stack aligned
  *--top = (void*)entry;
  for (int k = 0; k < 6; ++k) *--top = nullptr;
  c.top = top;
}
#else
}  // namespace shim
#include <ucontext.h>
namespace shim {
typedef ucontext_t Context;
inline void go(Context& from, Context& to) { swapcontext(&from, &to); }
inline void begin(Context& c, char* stack, void (*entry)()) {
  getcontext(&c);
  c.uc_stack.ss_sp = stack;
  c.uc_stack.ss_size = STACK;
  makecontext(&c, entry, 0);
}
#endif

struct Fiber {
  Context context;
  char* stack = nullptr;
  uint3 thread;
  unsigned rank = 0;
  bool done = true, ready = false;
  Wait wait = NOWHERE;
  unsigned mask = 0;            // the lanes that it waits for at AT_WARP
  unsigned long long value = 0; // its value in a shuffle
};

static std::vector<Fiber> fibers;
static Fiber* current;
static Context scheduler;
static void (*kernel)(void**);
static void** arguments;
static uint3 block_index;
static dim3 block_size, grid_size;
static unsigned threads;
static char* dynamic_shared;
static bool faulted;
static const char* fault;  // the address of an invalid access
static thread_local bool inside;

inline void wait_at(Wait where, unsigned mask = ~0u) {
  Fiber* self = current;
  self->wait = where;
  self->mask = mask;
  go(self->context, scheduler);
}

inline void entry() {
  kernel(arguments);
  Fiber* self = current;
  self->done = true;
  go(self->context, scheduler);
}

// Leaves the fiber where it is, in the signal.
inline void refuse(int, siginfo_t* about, void*) {
  if (!inside) {  // a fault of another thread, or of the scheduler itself
    signal(SIGSEGV, SIG_DFL);
    return;
  }
  faulted = true;
  fault = (const char*)about->si_addr;
  go(current->context, scheduler);
}

// While it is alive, a fault in a kernel becomes the launch's result instead of ending the process.
struct Watched {
  struct sigaction before[2];
  Watched() {
    struct sigaction action = {};
    action.sa_sigaction = refuse;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before[0]);
    sigaction(SIGBUS, &action, &before[1]);
    faulted = false;
    fault = nullptr;
  }
  ~Watched() {
    sigaction(SIGSEGV, &before[0], nullptr);
    sigaction(SIGBUS, &before[1], nullptr);
  }
};

inline void start(unsigned rank) {
  Fiber& f = fibers[rank];
  if (!f.stack) f.stack = (char*)aligned_alloc(64, STACK);
  f.rank = rank;
  f.thread = {rank % block_size.x, rank / block_size.x % block_size.y,
              rank / (block_size.x * block_size.y)};
  f.done = false;
  f.ready = true;
  begin(f.context, f.stack, entry);
}

inline void resume(Fiber& f) {
  current = &f;
  f.ready = false;
  f.wait = NOWHERE;
  inside = true;
  go(scheduler, f.context);
  inside = false;
}

// Releases lanes of a warp that wait for lanes which have all arrived; true if there are any.
inline bool release_warp(unsigned first, unsigned end) {
  unsigned here = 0, live = 0;
  for (unsigned i = first; i < end; ++i) {
    if (!fibers[i].done) live |= 1u << (i - first);
    if (!fibers[i].done && !fibers[i].ready && fibers[i].wait == AT_WARP) here |= 1u << (i - first);
  }
  bool some = false;
  for (unsigned i = first; i < end; ++i) {
    Fiber& f = fibers[i];
    if ((here >> (i - first) & 1) && (f.mask & live & ~here) == 0) some = f.ready = true;
  }
  return some;
}

inline bool run_warp(unsigned warp, Schedule schedule, unsigned& live) {
  unsigned first = warp * WARP, end = first + WARP < threads ? first + WARP : threads;
  bool moved = false, again = true;
  while (again) {
    again = false;
    for (unsigned k = first; k < end; ++k) {
      Fiber& f = fibers[schedule == BACKWARDS ? end - 1 - (k - first) : k];
      if (f.done || !f.ready) continue;
      resume(f);
      if (faulted) return false;
      moved = true;
      live -= f.done;
    }
    if (release_warp(first, end)) {
      moved = true;
      again = schedule != ROUND_ROBIN;
    }
  }
  return moved;
}

inline const char* run_block(Schedule schedule) {
  for (unsigned i = 0; i < threads; ++i) start(i);
  unsigned live = threads, warps = (threads + WARP - 1) / WARP;
  while (live) {
    bool moved = false;
    for (unsigned w = 0; w < warps; ++w)
      moved |= !faulted && run_warp(schedule == BACKWARDS ? warps - 1 - w : w, schedule, live);
    if (faulted) return "reads or writes outside of its arguments";
    bool all = live > 0;
    for (unsigned i = 0; i < threads; ++i)
      all = all && (fibers[i].done || (fibers[i].wait == AT_BLOCK && !fibers[i].ready));
    if (all && live < threads) return "__syncthreads after some threads of the block have returned";
    if (all) {
      for (unsigned i = 0; i < threads; ++i) fibers[i].ready = true;
    } else if (live && !moved) {
      return "deadlock: threads of a block wait at different barriers";
    }
  }
  return nullptr;
}

// `size` has the three numbers of the grid and the three of the block.
inline const char* launch(
    void (*body)(void**), void** args, const unsigned* size, size_t shared, int schedule) {
  kernel = body;
  arguments = args;
  grid_size = dim3(size[0], size[1], size[2]);
  block_size = dim3(size[3], size[4], size[5]);
  threads = block_size.x * block_size.y * block_size.z;
  if (!threads || threads > 1024) return "a block has 1 to 1024 threads";
  if (fibers.size() < threads) fibers.resize(threads);
  std::vector<char> dynamic(shared + 128);
  dynamic_shared = (char*)(((uintptr_t)dynamic.data() + 127) / 128 * 128);
  const char* wrong = nullptr;
  Watched here;
  for (unsigned z = 0; z < grid_size.z && !wrong; ++z)
    for (unsigned y = 0; y < grid_size.y && !wrong; ++y)
      for (unsigned x = 0; x < grid_size.x && !wrong; ++x) {
        block_index = {x, y, z};
        memset(dynamic_shared, 0xFF, shared);
        if (__start_shim_shared)
          memset(__start_shim_shared, 0xFF, __stop_shim_shared - __start_shim_shared);
        wrong = run_block((Schedule)schedule);
      }
  return wrong;
}

// The shuffle value of lane `source` of the warp; the bits of NaN if there is no such thread.
template <class T>
T exchange(unsigned mask, T value, unsigned source) {
  static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
  Fiber* self = current;
  memcpy(&self->value, &value, sizeof(T));
  wait_at(AT_WARP, mask);
  unsigned rank = (self->rank & ~(WARP - 1)) + source;
  unsigned long long bits = ~0ull;
  if (rank < threads && !fibers[rank].done && (mask >> source & 1)) bits = fibers[rank].value;
  wait_at(AT_WARP, mask);
  T result;
  memcpy(&result, &bits, sizeof(T));
  return result;
}

// Calls a kernel with arguments from pointers, and returns their sizes.
template <class... A, size_t... I>
void call_with(void (*kernel)(A...), void** a, std::index_sequence<I...>) {
  kernel(*(std::remove_const_t<A>*)a[I]...);
}
template <class... A> void call(void (*kernel)(A...), void** a) {
  call_with(kernel, a, std::index_sequence_for<A...>());
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
    if ((mask >> k & 1) && base + k < shim::threads && !shim::fibers[base + k].done)
      votes |= (unsigned)(shim::fibers[base + k].value & 1) << k;
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
