// Made-up GPUs: device memory is host memory, and the CPU executes what streams are told to do.
//
// These files define the functions of libcudart and libcuda that CuPy calls. What CUDA forbids
// returns CUDA's error. Not modelled: concurrency, performance, textures, inter-process memory.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#define EXPORT extern "C"

namespace gpu {

// ---- settings.cpp

// A number that tests may change; its start is the environment's GPUGRAD_CUDA_<NAME>.
struct Setting {
  const char* name;
  long value;
};
extern Setting devices, memory, peers, late, null_work, logging;

// ---- streams.cpp

struct Stream;

// A piece of work: a kernel, a copy, a library call. Graphs are lists of these.
struct Work {
  std::string kind, name;
  dim3 grid, block;
  size_t bytes;  // of dynamic shared memory of a kernel, else bytes copied or set
  std::function<cudaError_t()> run;
  const Stream* waits_for = nullptr;
  std::string arrays{}, notes{};  // for the log: see Work in control.py
};

struct Capture {
  Stream* origin;
  cudaStreamCaptureMode mode;
  unsigned long thread;
  cudaError_t broken = cudaSuccess;  // what the end of the capture returns
  std::vector<Work> work;
  std::map<Stream*, size_t> last;    // by stream: the number of its last work
  std::map<Stream*, size_t> joined;  // and of the last that the origin waited for
};

struct Stream {
  size_t number;  // how many streams were created before it
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  bool legacy = false;
  std::shared_ptr<Capture> capture;
  std::deque<Work> pending;  // not yet executed; only with the setting `late`
  size_t executed = 0;       // work that has left `pending`
};

extern std::recursive_mutex state;

int current_device();
Stream* stream_of(cudaStream_t handle);

// Executes the work, or records it where the stream is being captured.
cudaError_t enqueue(Stream* stream, Work work);
cudaError_t finish(Stream* stream);
cudaError_t finish_device(int device);
// What a call that synchronizes with the legacy stream returns while a blocking stream is captured.
cudaError_t legacy_is_free(int device);
// What a call that is unsafe during captures (an allocation) returns.
cudaError_t unsafe_during_capture();
// What a call that waits for a whole device returns.
cudaError_t device_is_free(int device);
cudaError_t break_capture(Capture& capture, cudaError_t error);

// ---- log.cpp

// Keeps what Python says about the work that this thread enqueues.
void note(Work& work);
// No stream stands for the host, which waits.
void log_work(const Work& work, const Stream* stream, const char* way);
void complain(const std::string& text);

}  // namespace gpu
