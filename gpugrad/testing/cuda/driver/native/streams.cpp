// Streams, events and captures.
//
// A stream executes its work at once, or with the setting `late` only when something waits for it:
// then a missing wait between streams shows as a wrong result. Streams that nothing orders execute
// the newest first, as their work is mostly meant to follow that of older ones.
#include <pthread.h>

#include <chrono>

#include "driver.h"

namespace gpu {

std::recursive_mutex state;

struct Event {
  Stream* stream = nullptr;
  size_t number = 0;  // of the work of the stream that it follows
  std::shared_ptr<Capture> capture;
  std::chrono::steady_clock::time_point time;
};

struct Newest {
  bool operator()(const Stream* a, const Stream* b) const { return a->number > b->number; }
};

static std::set<Stream*, Newest> streams;
static std::set<Event*> events;
static std::set<std::shared_ptr<Capture>> captures;

static Stream* new_stream(unsigned flags, int priority) {
  static size_t created = 0;
  Stream* s = new Stream{created++};
  s->device = current_device();
  s->flags = flags;
  s->priority = priority;
  return *streams.insert(s).first;
}

// Null, 1 and 2 name the legacy stream, again the legacy one, and the thread's own.
Stream* stream_of(cudaStream_t handle) {
  if ((size_t)handle > 2) return (Stream*)handle;
  std::lock_guard<std::recursive_mutex> hold(state);
  static std::map<int, Stream*> legacy;
  static thread_local std::map<int, Stream*> own;
  Stream*& s = ((size_t)handle == 2 ? own : legacy)[current_device()];
  if (!s) s = new_stream(cudaStreamDefault, 0);
  s->legacy = (size_t)handle != 2;
  return s;
}

static bool is_blocking(const Stream* s) { return !s->legacy && !(s->flags & cudaStreamNonBlocking); }

cudaError_t break_capture(Capture& capture, cudaError_t error) {
  if (!capture.broken) capture.broken = cudaErrorStreamCaptureInvalidated;
  return error;
}

cudaError_t unsafe_during_capture() {
  std::lock_guard<std::recursive_mutex> hold(state);
  for (auto& c : captures)
    if (c->mode == cudaStreamCaptureModeGlobal ||
        (c->mode == cudaStreamCaptureModeThreadLocal && c->thread == pthread_self()))
      return break_capture(*c, cudaErrorStreamCaptureUnsupported);
  return cudaSuccess;
}

cudaError_t device_is_free(int device) {
  std::lock_guard<std::recursive_mutex> hold(state);
  for (auto& c : captures)
    if (c->origin->device == device) return break_capture(*c, cudaErrorStreamCaptureUnsupported);
  return cudaSuccess;
}

cudaError_t legacy_is_free(int device) {
  for (auto& c : captures)
    if (c->origin->device == device && is_blocking(c->origin))
      return break_capture(*c, cudaErrorStreamCaptureImplicit);
  return cudaSuccess;
}

// Executes the pending work of a stream up to a number.
static cudaError_t finish_until(Stream* s, size_t number) {
  cudaError_t first = cudaSuccess;
  while (true) {
    Work work;
    {
      std::lock_guard<std::recursive_mutex> hold(state);
      if (s->pending.empty() || s->executed >= number) return first;
      work = std::move(s->pending.front());
      s->pending.pop_front();
      ++s->executed;
    }
    cudaError_t e = work.run();  // without the lock: it may call Python
    if (!first) first = e;
  }
}

static void log_host(const Stream* waits_for) {
  log_work({"wait", "host", {}, {}, 0, nullptr, waits_for}, nullptr, "run");
}

cudaError_t finish(Stream* s) { return finish_until(s, ~(size_t)0); }

// All streams of a device; -1 means of all devices.
cudaError_t finish_device(int device) {
  if (!late.value) return cudaSuccess;
  std::vector<Stream*> some;
  {
    std::lock_guard<std::recursive_mutex> hold(state);
    for (Stream* s : streams)
      if (device < 0 || s->device == device) some.push_back(s);
  }
  cudaError_t first = cudaSuccess;
  for (Stream* s : some) {
    cudaError_t e = finish(s);
    if (!first) first = e;
  }
  return first;
}

// The legacy stream waits for the blocking streams of its device, and they for it.
static void finish_blocking(int device) {
  std::vector<Stream*> some;
  {
    std::lock_guard<std::recursive_mutex> hold(state);
    for (Stream* s : streams)
      if (s->device == device && is_blocking(s)) some.push_back(s);
  }
  for (Stream* s : some) finish(s);
}

// Work that writes to a device does nothing with the setting `null_work`; a graph's launch still
// logs its nodes.
static bool is_null(const Work& work) {
  if (work.kind == "graph" && logging.value) return false;
  if (work.name == "HtoD" && null_work.value == 2) return false;
  return null_work.value && work.kind != "host" && work.kind != "wait" && work.name != "DtoH";
}

cudaError_t enqueue(Stream* s, Work work) {
  if (is_null(work)) work.run = [] { return cudaSuccess; };
  note(work);
  {
    std::lock_guard<std::recursive_mutex> hold(state);
    if (Capture* c = s->capture.get()) {
      if (c->broken) return cudaErrorStreamCaptureInvalidated;
      log_work(work, s, "capture");
      c->work.push_back(std::move(work));
      c->last[s] = c->work.size();
      return cudaSuccess;
    }
    if (s->legacy)
      if (cudaError_t e = legacy_is_free(s->device)) return e;
    log_work(work, s, "run");
    if (late.value && !s->legacy) {
      s->pending.push_back(std::move(work));
      return cudaSuccess;
    }
  }
  if (late.value) finish_blocking(s->device);
  return work.run();
}

}  // namespace gpu

using namespace gpu;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* to, unsigned flags, int priority) {
  std::lock_guard<std::recursive_mutex> hold(state);
  *to = (cudaStream_t)new_stream(flags, priority);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* to, unsigned flags) {
  return cudaStreamCreateWithPriority(to, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* to) { return cudaStreamCreateWithPriority(to, 0, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  Stream* s = stream_of(handle);
  finish(s);
  std::lock_guard<std::recursive_mutex> hold(state);
  if (!streams.erase(s)) return cudaErrorInvalidResourceHandle;
  for (Event* e : events)
    if (e->stream == s) e->stream = nullptr;
  delete s;
  return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned* to) {
  return *to = stream_of(s)->flags, cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t s, int* to) {
  return *to = stream_of(s)->priority, cudaSuccess;
}

// A query executes what it asks for, so its answer is always yes.
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Stream* s = stream_of(handle);
  {
    std::lock_guard<std::recursive_mutex> hold(state);
    if (s->capture) return break_capture(*s->capture, cudaErrorStreamCaptureUnsupported);
    if (s->legacy)
      if (cudaError_t e = legacy_is_free(s->device)) return e;
  }
  if (s->legacy && late.value) finish_blocking(s->device);
  return finish(s);
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  log_host(stream_of(s));
  return cudaStreamQuery(s);
}
cudaError_t cudaDeviceSynchronize() {
  if (cudaError_t e = device_is_free(current_device())) return e;
  return finish_device(current_device());
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t call, void* data) {
  return enqueue(stream_of(s), {"host", "function", {}, {}, 0, [=] { return call(data), cudaSuccess; }});
}
cudaError_t cudaStreamAddCallback(
    cudaStream_t s, cudaStreamCallback_t call, void* data, unsigned) {
  if (stream_of(s)->capture) return cudaErrorStreamCaptureUnsupported;
  auto run = [=] { return call(s, cudaSuccess, data), cudaSuccess; };
  return enqueue(stream_of(s), {"host", "callback", {}, {}, 0, run});
}

// ---- events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* to, unsigned) {
  std::lock_guard<std::recursive_mutex> hold(state);
  *to = (cudaEvent_t)*events.insert(new Event).first;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* to) { return cudaEventCreateWithFlags(to, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  std::lock_guard<std::recursive_mutex> hold(state);
  Event* e = (Event*)handle;
  if (!events.erase(e)) return cudaErrorInvalidResourceHandle;
  delete e;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
  Stream* s = stream_of(stream);
  if (s->legacy && late.value) finish_blocking(s->device);  // it comes after their work
  std::lock_guard<std::recursive_mutex> hold(state);
  Event* e = (Event*)handle;
  e->stream = s;
  e->capture = e->stream->capture;
  e->number = e->capture ? e->capture->last[e->stream] : e->stream->executed + e->stream->pending.size();
  e->time = std::chrono::steady_clock::now();
  return cudaSuccess;
}
// A query executes what it asks for, so its answer is always yes.
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  Event* e = (Event*)handle;
  {
    std::lock_guard<std::recursive_mutex> hold(state);
    if (e->capture) return break_capture(*e->capture, cudaErrorCapturedEvent);
    if (!e->stream) return cudaSuccess;
  }
  return finish_until(e->stream, e->number);
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  if (((Event*)e)->stream) log_host(((Event*)e)->stream);
  return cudaEventQuery(e);
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  Event *a = (Event*)start, *b = (Event*)end;
  if (!a->stream || !b->stream) return cudaErrorInvalidResourceHandle;
  *ms = std::chrono::duration<float, std::milli>(b->time - a->time).count();
  return cudaSuccess;
}

// A capture spreads to the streams that wait for it, and must come back to its origin.
static cudaError_t wait_in_capture(Stream* s, Event* e) {
  if (!e->capture) return break_capture(*s->capture, cudaErrorStreamCaptureIsolation);
  if (!s->capture) {
    s->capture = e->capture;
    e->capture->last[s] = e->number;
    return cudaSuccess;
  }
  if (s->capture != e->capture) return break_capture(*s->capture, cudaErrorStreamCaptureMerge);
  if (s == s->capture->origin) {
    size_t& joined = s->capture->joined[e->stream];
    joined = e->number > joined ? e->number : joined;
  }
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  Stream* s = stream_of(stream);
  Event* e = (Event*)event;
  {
    std::lock_guard<std::recursive_mutex> hold(state);
    if (!e->stream) return cudaSuccess;  // never recorded
    bool is_captured = e->capture && captures.count(e->capture);
    if (s->capture || is_captured) return wait_in_capture(s, e);
  }
  Stream* other = e->stream;
  size_t number = e->number;
  auto run = [=] { return late.value && other != s ? finish_until(other, number) : cudaSuccess; };
  return enqueue(s, {"wait", "event", {}, {}, 0, run, other});
}

// ---- captures

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  std::lock_guard<std::recursive_mutex> hold(state);
  Stream* s = stream_of(stream);
  if (s->legacy) return cudaErrorStreamCaptureUnsupported;
  if (s->capture) return cudaErrorIllegalState;
  s->capture = std::make_shared<Capture>();
  s->capture->origin = s;
  s->capture->mode = mode;
  s->capture->thread = pthread_self();
  captures.insert(s->capture);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* to) {
  std::lock_guard<std::recursive_mutex> hold(state);
  Stream* s = stream_of(stream);
  if (s->legacy)
    if (cudaError_t e = legacy_is_free(s->device)) return e;
  *to = !s->capture           ? cudaStreamCaptureStatusNone
        : s->capture->broken ? cudaStreamCaptureStatusInvalidated
                             : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaGraph_t gpugrad_new_graph(void* work);  // in graphs.cpp

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  std::lock_guard<std::recursive_mutex> hold(state);
  *graph = nullptr;
  Stream* s = stream_of(stream);
  if (!s->capture) return cudaErrorIllegalState;
  std::shared_ptr<Capture> c = s->capture;
  if (c->origin != s) return break_capture(*c, cudaErrorStreamCaptureUnmatched);
  for (auto& [other, number] : c->last)
    if (other != s && c->joined[other] < number) c->broken = cudaErrorStreamCaptureUnjoined;
  for (Stream* other : streams)
    if (other->capture == c) other->capture = nullptr;
  captures.erase(c);
  if (c->broken) return c->broken;
  *graph = gpugrad_new_graph(&c->work);
  return cudaSuccess;
}

}  // extern "C"
