// The runtime of the shim: fibers, the scheduler and launches. Kernels are linked to it.
#include "cudashim.h"

#include <signal.h>
#include <stdlib.h>

#include <cmath>
#include <vector>

namespace shim {

enum Schedule { ROUND_ROBIN, WARP_BY_WARP, BACKWARDS };
const int LENIENT = 8;  // added to a schedule: barriers do not wait for threads that have returned
const int COOPERATIVE = 16;  // added to a schedule: blocks may wait for each other
const int PATIENCE = 10000;  // how often a block may find that what it waits for has not happened
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
static void go(Context& from, Context& to) { shim_switch(&from.top, to.top); }
static void begin(Context& c, char* stack, void (*entry)()) {
  void** top = (void**)(stack + STACK - 64);
  *--top = nullptr;  // where entry would return to: keeps its stack aligned
  *--top = (void*)entry;
  for (int k = 0; k < 6; ++k) *--top = nullptr;
  c.top = top;
}
#else
}  // namespace shim
#include <ucontext.h>
namespace shim {
typedef ucontext_t Context;
static void go(Context& from, Context& to) { swapcontext(&from, &to); }
static void begin(Context& c, char* stack, void (*entry)()) {
  getcontext(&c);
  c.uc_stack.ss_sp = stack;
  c.uc_stack.ss_size = STACK;
  makecontext(&c, entry, 0);
}
#endif

struct Fiber : Lane {
  Context context;
  char* stack = nullptr;
  bool ready = false;
  Wait wait = NOWHERE;
  unsigned mask = 0;  // the lanes that it waits for, at AT_WARP
};

Lane* current;
uint3 block_index;
dim3 block_size, grid_size;
unsigned threads;
char* dynamic_shared;

static std::vector<Fiber> fibers;
static Context scheduler;
static void (*kernel)(void**);
static void** arguments;
static const char* faulted;  // what was wrong with an access, of a kernel that broke off
static const char* fault;  // the address that was not to be read or written
static thread_local bool inside;

static Fiber* running() { return static_cast<Fiber*>(current); }

Lane& lane_at(unsigned rank) { return fibers[rank]; }

void wait_at(Wait where, unsigned mask) {
  Fiber* self = running();
  self->wait = where;
  self->mask = mask;
  go(self->context, scheduler);
}

static void entry() {
  kernel(arguments);
  Fiber* self = running();
  self->done = true;
  go(self->context, scheduler);
}

// Leaves the fiber where it is, in the signal or in the check of an access.
static void break_off(const char* why, const void* address) {
  faulted = why;
  fault = (const char*)address;
  go(running()->context, scheduler);
}

static void refuse(int, siginfo_t* about, void*) {
  if (!inside) {  // some other thread's, or the scheduler's own
    signal(SIGSEGV, SIG_DFL);
    return;
  }
  break_off("reads or writes outside of its arguments", about->si_addr);
}

// While it lives, a fault in a kernel is the launch's result and not the end of the process.
struct Watched {
  struct sigaction before[2];
  Watched() {
    struct sigaction action = {};
    action.sa_sigaction = refuse;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before[0]);
    sigaction(SIGBUS, &action, &before[1]);
    faulted = nullptr;
    fault = nullptr;
  }
  ~Watched() {
    sigaction(SIGSEGV, &before[0], nullptr);
    sigaction(SIGBUS, &before[1], nullptr);
  }
};

static void start(unsigned rank) {
  Fiber& f = fibers[rank];
  if (!f.stack) f.stack = (char*)aligned_alloc(64, STACK);
  f.rank = rank;
  f.thread = {rank % block_size.x, rank / block_size.x % block_size.y,
              rank / (block_size.x * block_size.y)};
  f.done = false;
  f.ready = true;
  begin(f.context, f.stack, entry);
}

static void resume(Fiber& f) {
  current = &f;
  f.ready = false;
  f.wait = NOWHERE;
  inside = true;
  go(scheduler, f.context);
  inside = false;
}

// Releases the warps whose lanes have all arrived; true if there are any.
static bool release_warp(unsigned first, unsigned end) {
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

static bool run_warp(unsigned warp, Schedule schedule, unsigned& live) {
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

// What has become of a block that ran as far as it could.
struct Outcome {
  bool asleep;  // it waits for other blocks
  const char* error;
};

static Outcome run_block(Schedule schedule, bool lenient) {
  unsigned live = 0, warps = (threads + WARP - 1) / WARP;
  for (unsigned i = 0; i < threads; ++i) live += !fibers[i].done;
  while (live) {
    bool moved = false;
    for (unsigned w = 0; w < warps; ++w)
      moved |= !faulted && run_warp(schedule == BACKWARDS ? warps - 1 - w : w, schedule, live);
    if (faulted) return {false, faulted};
    bool all = live > 0, asleep = false;
    for (unsigned i = 0; i < threads; ++i) {
      all = all && (fibers[i].done || (fibers[i].wait == AT_BLOCK && !fibers[i].ready));
      asleep = asleep || (!fibers[i].done && fibers[i].wait == ASLEEP);
    }
    if (all && live < threads && !lenient)
      return {false, "__syncthreads after some threads of the block have returned"};
    if (all) {
      for (unsigned i = 0; i < threads; ++i) fibers[i].ready = true;
    } else if (live && !moved) {
      if (asleep) return {true, nullptr};
      return {false, "deadlock: threads of a block wait at different barriers"};
    }
  }
  return {false, nullptr};
}

// A block that waits for others: its threads and its shared memory.
struct Asleep {
  uint3 index;
  std::vector<Fiber> own;
  std::vector<char> shared, dynamic;
};

static std::vector<std::vector<Fiber>> spare;  // of blocks that have returned, for their stacks

static Asleep put_aside(size_t dynamic, char* first_shared, char* last_shared) {
  Asleep block = {block_index, {}, {}, {dynamic_shared, dynamic_shared + dynamic}};
  if (first_shared) block.shared.assign(first_shared, last_shared);
  block.own.swap(fibers);
  if (!spare.empty()) fibers.swap(spare.back()), spare.pop_back();
  if (fibers.size() < threads) fibers.resize(threads);
  return block;
}

static void take_up(Asleep& block, char* first_shared) {
  block_index = block.index;
  spare.emplace_back();
  spare.back().swap(fibers);
  fibers.swap(block.own);
  memcpy(dynamic_shared, block.dynamic.data(), block.dynamic.size());
  if (first_shared) memcpy(first_shared, block.shared.data(), block.shared.size());
  for (unsigned i = 0; i < threads; ++i) fibers[i].ready |= fibers[i].wait == ASLEEP;
}

// `size` is the grid's three numbers and the block's three; static shared memory has two ends.
const char* launch(
    void (*body)(void**), void** args, const unsigned* size, size_t shared, int schedule,
    char* first_shared, char* last_shared) {
  kernel = body;
  arguments = args;
  grid_size = dim3(size[0], size[1], size[2]);
  block_size = dim3(size[3], size[4], size[5]);
  threads = block_size.x * block_size.y * block_size.z;
  if (!threads || threads > 1024) return "a block has 1 to 1024 threads";
  if (fibers.size() < threads) fibers.resize(threads);
  std::vector<char> dynamic(shared + 128);
  dynamic_shared = (char*)(((uintptr_t)dynamic.data() + 127) / 128 * 128);
  Schedule order = (Schedule)(schedule % LENIENT);
  bool lenient = schedule & LENIENT, cooperative = schedule & COOPERATIVE;
  std::vector<Asleep> asleep;
  Outcome last = {false, nullptr};
  Watched here;
  for (unsigned z = 0; z < grid_size.z && !last.error; ++z)
    for (unsigned y = 0; y < grid_size.y && !last.error; ++y)
      for (unsigned x = 0; x < grid_size.x && !last.error; ++x) {
        block_index = {x, y, z};
        if (order == BACKWARDS)
          block_index = {grid_size.x - 1 - x, grid_size.y - 1 - y, grid_size.z - 1 - z};
        memset(dynamic_shared, 0xFF, shared);
        if (first_shared) memset(first_shared, 0xFF, last_shared - first_shared);
        for (unsigned i = 0; i < threads; ++i) start(i);
        last = run_block(order, lenient);
        if (last.asleep && !cooperative)
          last.error = "waits for other blocks in a launch that is not cooperative";
        if (last.asleep) asleep.push_back(put_aside(shared, first_shared, last_shared));
      }
  for (int round = 0; !asleep.empty() && !last.error; ++round) {
    std::vector<Asleep> still;
    for (size_t k = 0; k < asleep.size() && !last.error; ++k) {
      take_up(asleep[k], first_shared);
      last = run_block(order, lenient);
      if (last.asleep) still.push_back(put_aside(shared, first_shared, last_shared));
    }
    if (round == PATIENCE) last.error = "deadlock: blocks wait for something that does not happen";
    asleep.swap(still);
  }
  for (Asleep& block : asleep)
    if (!block.own.empty()) spare.push_back(std::move(block.own));
  return last.error;
}

struct Copy {
  void* to;
  const void* from;
};
static std::vector<Copy> copies[1024];  // those that each thread has started

}  // namespace shim

void copy_async(void* to, const void* from, bool there) {
  shim::copies[shim::current->rank].push_back({to, there ? from : nullptr});
}
void copies_arrived() {
  for (shim::Copy c : shim::copies[shim::current->rank])
    c.from ? memcpy(c.to, c.from, 16) : memset(c.to, 0, 16);
  shim::copies[shim::current->rank].clear();
}

// -fsanitize=alignment calls it for an access at no multiple of its width, which a GPU refuses.
extern "C" void __ubsan_handle_type_mismatch_v1(void*, void* address) {
  if (shim::inside) shim::break_off("reads or writes at a misaligned address", address);
}

extern "C" const void* shim_fault() { return shim::fault; }

double cyl_bessel_i0(double x) { return std::cyl_bessel_i(0, fabs(x)); }
double cyl_bessel_i1(double x) { return copysign(std::cyl_bessel_i(1, fabs(x)), x); }
