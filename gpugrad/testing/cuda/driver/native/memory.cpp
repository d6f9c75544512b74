// Device memory: pages of the host, between two pages that may be neither read nor written.
//
// An allocation ends as close to the second page as the alignment of 256 bytes allows; the bytes
// between are checked when it is freed. Fresh memory holds 0xFF bytes: NaN, or -1.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

using namespace gpu;

namespace {

enum Place { PAGEABLE, PINNED, DEVICE, MANAGED };

struct Block {
  size_t bytes;
  Place place;
  int device;
  char* pages;
  size_t page_bytes;
};

const size_t PAGE = 4096, ALIGNMENT = 256, FILLED = 1 << 20;

std::map<char*, Block> blocks;  // by address
std::map<int, size_t> used;     // bytes, by device

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// The end of what the kernel may write, and what lies between it and the page.
size_t slack(const Block& b) { return round_up(b.bytes, ALIGNMENT) - b.bytes; }

cudaError_t allocate(void** to, size_t bytes, Place place) {
  std::lock_guard<std::recursive_mutex> hold(state);
  int device = current_device();
  bool on_device = place == DEVICE || place == MANAGED;
  *to = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (on_device && used[device] + bytes > (size_t)memory.value) return cudaErrorMemoryAllocation;
  Block b{bytes, place, device, nullptr, round_up(bytes, PAGE) + 2 * PAGE};
  void* pages = mmap(nullptr, b.page_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return cudaErrorMemoryAllocation;
  b.pages = (char*)pages;
  mprotect(b.pages, PAGE, PROT_NONE);
  mprotect(b.pages + b.page_bytes - PAGE, PAGE, PROT_NONE);
  char* at = b.pages + b.page_bytes - PAGE - round_up(bytes, ALIGNMENT);
  if (bytes <= FILLED && !null_work.value) memset(at, 0xFF, bytes);
  memset(at + bytes, 0xFF, slack(b));
  if (on_device) used[device] += bytes;
  blocks[at] = b;
  *to = at;
  return cudaSuccess;
}

cudaError_t release(void* address, bool of_device) {
  if (!address) return cudaSuccess;
  std::lock_guard<std::recursive_mutex> hold(state);
  auto found = blocks.find((char*)address);
  if (found == blocks.end()) return cudaErrorInvalidValue;
  Block b = found->second;
  if ((b.place == PINNED) == of_device) return cudaErrorInvalidValue;
  for (size_t i = 0; i < slack(b); ++i)
    if (found->first[b.bytes + i] != (char)0xFF) {
      complain("something wrote behind the end of an allocation of " + std::to_string(b.bytes) +
               " bytes");
      break;
    }
  if (of_device) used[b.device] -= b.bytes;
  munmap(b.pages, b.page_bytes);
  blocks.erase(found);
  return cudaSuccess;
}

// The block that contains an address, or null.
const Block* block_of(const void* address, char** start = nullptr) {
  auto after = blocks.upper_bound((char*)address);
  if (after == blocks.begin()) return nullptr;
  --after;
  if ((char*)address >= after->first + after->second.bytes) return nullptr;
  if (start) *start = after->first;
  return &after->second;
}

Place place_of(const void* address) {
  const Block* b = block_of(address);
  return b ? b->place : PAGEABLE;
}

// Whether `n` bytes are device memory of one allocation.
bool on_device(const void* address, size_t n) {
  char* start;
  const Block* b = block_of(address, &start);
  return b && b->place >= DEVICE && (char*)address + n <= start + b->bytes;
}

cudaError_t check(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  std::lock_guard<std::recursive_mutex> hold(state);
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  bool valid = (!to_device || on_device(to, n)) && (!from_device || on_device(from, n));
  if (!valid) complain("a copy reads or writes outside of an allocation");
  return valid ? cudaSuccess : cudaErrorInvalidValue;
}

const char* name_of(cudaMemcpyKind kind) {
  static const char* names[] = {"HtoH", "HtoD", "DtoH", "DtoD", "any"};
  return names[kind];
}

Work copy_work(cudaMemcpyKind kind, size_t n, std::function<void()> run) {
  return {"copy", name_of(kind), {}, {}, n, [run] { return run(), cudaSuccess; }};
}

// A copy that returns when it is done.
cudaError_t copy_now(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  if (!n) return cudaSuccess;
  if (cudaError_t e = check(to, from, n, kind)) return e;
  Stream* legacy = stream_of(nullptr);
  cudaError_t e = enqueue(legacy, copy_work(kind, n, [=] { memmove(to, from, n); }));
  return e ? e : finish(legacy);
}

// Rows of `width` bytes, the next ones `pitch` bytes further on.
void copy_rows(char* to, size_t to_pitch, const char* from, size_t from_pitch, size_t width,
               size_t rows) {
  for (size_t i = 0; i < rows; ++i) memmove(to + i * to_pitch, from + i * from_pitch, width);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** to, size_t n) {
  if (cudaError_t e = unsafe_during_capture()) return e;
  return allocate(to, n, DEVICE);
}
cudaError_t cudaMallocManaged(void** to, size_t n, unsigned) {
  if (cudaError_t e = unsafe_during_capture()) return e;
  return allocate(to, n, MANAGED);
}
cudaError_t cudaHostAlloc(void** to, size_t n, unsigned) {
  if (cudaError_t e = unsafe_during_capture()) return e;
  return allocate(to, n, PINNED);
}
cudaError_t cudaFree(void* p) {
  if (cudaError_t e = unsafe_during_capture()) return e;
  if (cudaError_t e = finish_device(-1)) return e;
  return release(p, true);
}
cudaError_t cudaFreeHost(void* p) {
  if (cudaError_t e = unsafe_during_capture()) return e;
  if (cudaError_t e = finish_device(-1)) return e;
  return release(p, false);
}
// A capture would record these as nodes that allocate when the graph is launched.
cudaError_t cudaMallocAsync(void** to, size_t n, cudaStream_t s) {
  if (stream_of(s)->capture) return cudaErrorNotSupported;
  return allocate(to, n, DEVICE);
}
cudaError_t cudaMallocFromPoolAsync(void** to, size_t n, cudaMemPool_t, cudaStream_t s) {
  return cudaMallocAsync(to, n, s);
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
  if (stream_of(s)->capture) return cudaErrorNotSupported;
  if (cudaError_t e = finish_device(-1)) return e;
  return release(p, true);
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return *pool = (cudaMemPool_t)(size_t)(device + 1), cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  std::lock_guard<std::recursive_mutex> hold(state);
  *total = memory.value;
  size_t taken = used[current_device()];
  *free = taken < *total ? *total - taken : 0;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
  std::lock_guard<std::recursive_mutex> hold(state);
  memset(a, 0, sizeof *a);
  const Block* b = block_of(p);
  static const cudaMemoryType types[] = {cudaMemoryTypeUnregistered, cudaMemoryTypeHost,
                                         cudaMemoryTypeDevice, cudaMemoryTypeManaged};
  a->type = types[b ? b->place : PAGEABLE];
  a->device = b ? b->device : -2;
  a->devicePointer = b ? (void*)p : nullptr;
  a->hostPointer = b && b->place != DEVICE ? (void*)p : nullptr;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind kind) {
  return copy_now(to, from, n, kind);
}
cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t n) {
  return copy_now(to, from, n, cudaMemcpyDeviceToDevice);
}
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t stream) {
  if (!n) return cudaSuccess;
  if (cudaError_t e = check(to, from, n, kind)) return e;
  Stream* s = stream_of(stream);
  bool read_now = kind == cudaMemcpyHostToDevice && place_of(from) == PAGEABLE && !s->capture;
  if (read_now) {  // CUDA reads pageable memory before it returns
    auto staged = std::make_shared<std::vector<char>>((const char*)from, (const char*)from + n);
    return enqueue(s, copy_work(kind, n, [=] { memcpy(to, staged->data(), n); }));
  }
  cudaError_t e = enqueue(s, copy_work(kind, n, [=] { memmove(to, from, n); }));
  bool wait = kind == cudaMemcpyDeviceToHost && place_of(to) == PAGEABLE && !s->capture;
  return e || !wait ? e : finish(s);
}
cudaError_t cudaMemcpyPeerAsync(
    void* to, int, const void* from, int, size_t n, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToDevice, stream);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t rows, cudaMemcpyKind kind, cudaStream_t stream) {
  auto run = [=] { copy_rows((char*)to, to_pitch, (const char*)from, from_pitch, width, rows); };
  return enqueue(stream_of(stream), copy_work(kind, width * rows, run));
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t rows, cudaMemcpyKind kind) {
  cudaError_t e = cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, rows, kind, nullptr);
  return e ? e : finish(stream_of(nullptr));
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t n, cudaStream_t stream) {
  if (!n) return cudaSuccess;
  if (cudaError_t e = check(to, to, n, cudaMemcpyDeviceToDevice)) return e;
  Work work{"set", "memset", {}, {}, n, [=] { return memset(to, value, n), cudaSuccess; }};
  return enqueue(stream_of(stream), work);
}
cudaError_t cudaMemset(void* to, int value, size_t n) {
  return cudaMemsetAsync(to, value, n, nullptr);
}
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) {
  return cudaSuccess;
}

}  // extern "C"

// The bytes in use on a device, for tests.
EXPORT size_t gpugrad_used(int device) {
  std::lock_guard<std::recursive_mutex> hold(state);
  return used[device];
}
