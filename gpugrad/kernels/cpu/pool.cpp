// A pool of threads: its workers spin for a while after a job, since the next one often follows
// within microseconds, and then sleep on a futex.
//
// A job is announced by its ticket: a serial number, and how many of its pieces are left. To take a
// piece a thread swaps the ticket for one with a piece less, which fails if the job has changed.
// So a worker that comes late can neither take a piece of a job that is over nor mix up two jobs.
//
// Some threads take pieces from the front and some from the back, and the same ones in each job: what
// a thread finds in its own cache then is what it wrote there. With pieces in turn, relu of an array
// of 4 MB takes 1.5 times as long.
#include "array.h"
#include "pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace {

const long SPINS = 20000;  // pauses before a worker sleeps: never spinning costs 6% of a GPT step
const long WAITS = 20000;  // pauses before the caller yields its core to a worker that waits for it
const uint64_t LEFT = 0xFFFFFFFF;  // of a ticket: how many pieces are left; the rest is its serial

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

struct Pool {
  std::atomic<uint64_t> ticket{0};
  std::atomic<gpugrad_job> job{nullptr};
  std::atomic<void*> state{nullptr};
  std::atomic<long> pieces{0}, unfinished{0};
  std::atomic<long> front{0}, back{0};  // pieces taken there
  std::atomic<uint32_t> serial{0};  // what sleeping workers wait on
  std::atomic<long> sleeping{0};
  std::atomic<bool> taken{false};  // by the thread whose job runs
  std::atomic<long> started{0};  // workers that exist
};

std::atomic<long> limit{1};  // threads of a job
Pool* pool = new Pool;  // never deleted: workers may still spin while the process exits

// Works on the current job until no piece is left, from the front or the back.
void work(Pool& p, bool from_front) {
  for (;;) {
    uint64_t ticket = p.ticket.load(std::memory_order_acquire);
    if (!(ticket & LEFT)) return;
    gpugrad_job job = p.job.load(std::memory_order_relaxed);
    void* state = p.state.load(std::memory_order_relaxed);
    long last = p.pieces.load(std::memory_order_relaxed) - 1;
    // if this succeeds, the job was current all the time, and what was read is of one job
    if (!p.ticket.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel)) continue;
    long taken = (from_front ? p.front : p.back).fetch_add(1, std::memory_order_relaxed);
    job(state, from_front ? taken : last - taken);
    p.unfinished.fetch_sub(1, std::memory_order_release);
  }
}

struct Start {
  Pool* pool;
  long index;
};

void* worker(void* argument) {
  Start start = *(Start*)argument;
  delete (Start*)argument;
  Pool& p = *start.pool;
  for (long spins = 0;;) {
    uint32_t serial = p.serial.load();
    bool wanted = start.index < limit.load(std::memory_order_relaxed);
    if (wanted && (p.ticket.load(std::memory_order_relaxed) & LEFT)) {
      work(p, start.index % 2 == 0);
      spins = 0;
    } else if (wanted && ++spins < SPINS) {
      relax();
    } else {
      p.sleeping.fetch_add(1);
      if (!wanted || !(p.ticket.load() & LEFT))  // the futex compares the serial again
        syscall(SYS_futex, &p.serial, FUTEX_WAIT_PRIVATE, serial, nullptr, nullptr, 0);
      p.sleeping.fetch_sub(1);
      spins = 0;
    }
  }
  return nullptr;
}

// A forked process has none of the threads, and may have been forked in the middle of a job.
void renew() { pool = new Pool; }

void start_workers(Pool& p) {
  static bool registered = pthread_atfork(nullptr, nullptr, renew) == 0;
  (void)registered;
  sigset_t all, before;  // signals are for Python's threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (p.started < limit - 1) {
    pthread_t thread;
    Start* start = new Start{&p, p.started + 1};
    if (pthread_create(&thread, nullptr, worker, start)) {
      delete start;
      limit = p.started + 1;  // the system refuses more
      break;
    }
    pthread_detach(thread);
    p.started.fetch_add(1);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void announce(Pool& p, gpugrad_job job, void* state, long n) {
  p.job.store(job, std::memory_order_relaxed);
  p.state.store(state, std::memory_order_relaxed);
  p.pieces.store(n, std::memory_order_relaxed);
  p.unfinished.store(n, std::memory_order_relaxed);
  p.front.store(0, std::memory_order_relaxed), p.back.store(0, std::memory_order_relaxed);
  uint32_t serial = p.serial.load(std::memory_order_relaxed) + 1;
  p.ticket.store(uint64_t(serial) << 32 | uint64_t(n));
  p.serial.store(serial);
  if (p.sleeping.load())  // all of them: one that is above the limit would swallow a single call
    syscall(SYS_futex, &p.serial, FUTEX_WAKE_PRIVATE, 1 << 30, nullptr, nullptr, 0);
}

struct Run {
  gpugrad_kernel kernel;
  char** pointers;
  long n, grain;
  char* partials;
  long partial_size;
};

void run_piece(void* state, long k) {
  Run& run = *(Run*)state;
  long low = k * run.grain, high = low + run.grain < run.n ? low + run.grain : run.n;
  run.kernel(run.pointers, low, high, run.partials + k * run.partial_size);
}

}  // namespace

extern "C" {

long gpugrad_header = 16;

// What array_of reads of a three-dimensional array, for a comparison with what Python says.
void gpugrad_fields(void* array, long long* fields) {
  const Array& a = array_of(array);
  *fields++ = (long long)a.data;
  *fields++ = a.ndim;
  for (int d = 0; d < 3; ++d) *fields++ = a.shape[d];
  for (int d = 0; d < 3; ++d) *fields++ = a.strides[d];
}

// Where the elements of arrays begin.
void gpugrad_addresses(void** arrays, void** addresses, long n) {
  for (long k = 0; k < n; ++k) addresses[k] = array_of(arrays[k]).data;
}

void gpugrad_set_threads(long n) { limit = n < 1 ? 1 : n; }

long gpugrad_threads() { return limit; }

void gpugrad_parallel(gpugrad_job job, void* state, long n) {
  Pool& p = *pool;
  if (n < 2 || limit < 2 || n > long(LEFT) || p.taken.exchange(true, std::memory_order_acquire)) {
    for (long k = 0; k < n; ++k) job(state, k);
    return;
  }
  if (p.started < limit - 1) start_workers(p);
  announce(p, job, state, n);
  work(p, true);
  for (long spins = 0; p.unfinished.load(std::memory_order_acquire); ++spins)
    if (spins < WAITS) relax(); else sched_yield();
  p.taken.store(false, std::memory_order_release);
}

void gpugrad_run(
    gpugrad_kernel kernel, gpugrad_end end, long n, long grain, char** pointers, char* partials,
    long partial_size) {
  Run run = {kernel, pointers, n, grain, partials, partial_size};
  long count = (n + grain - 1) / grain;
  gpugrad_parallel(run_piece, &run, count);
  if (end) end(pointers, partials, count);
}

// The same with the elements of at most four arrays. Python makes no array of pointers, which takes
// longer than a kernel of a few thousand elements.
void gpugrad_run_few(
    gpugrad_kernel kernel, long n, long grain, long count, void* a, void* b, void* c, void* d) {
  void* arrays[] = {a, b, c, d};
  char* pointers[4];
  for (long k = 0; k < count; ++k) pointers[k] = (char*)array_of(arrays[k]).data;
  gpugrad_run(kernel, nullptr, n, grain, pointers, nullptr, 0);
}
}
