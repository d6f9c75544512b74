// The log of all work: one line each, of fields between tabs.
#include <stdio.h>

#include "driver.h"

namespace gpu {

static std::mutex log_lock;
static std::string lines, complaints;
static thread_local std::string notes;

static std::string size(dim3 d) {
  return std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z);
}

// The stream's handle; -1 is none.
static std::string handle(const Stream* s) {
  return std::to_string(!s ? -1 : s->legacy ? 0 : (long)(size_t)s);
}

void note(Work& work) {
  if (logging.value) work.notes = notes;
}

// `way` is "run", "capture" or "replay".
void log_work(const Work& work, const Stream* stream, const char* way) {
  if (!logging.value) return;
  std::lock_guard<std::mutex> hold(log_lock);
  int device = (stream ? stream : work.waits_for)->device;
  lines += std::string(way) + "\t" + work.kind + "\t" + work.name + "\t" + size(work.grid) + "\t" +
           size(work.block) + "\t" + std::to_string(work.bytes) + "\t" + std::to_string(device) +
           "\t" + handle(stream) + "\t" + handle(work.waits_for) + "\t" + work.arrays + "\t" + work.notes + "\n";
}

// Says on stderr what CUDA's error code does not say.
void complain(const std::string& text) {
  std::lock_guard<std::mutex> hold(log_lock);
  complaints += text + "\n";
  fprintf(stderr, "gpugrad.testing.cuda.driver: %s\n", text.c_str());
}

}  // namespace gpu

static const char* take(std::string& from) {
  static thread_local std::string taken;
  std::lock_guard<std::mutex> hold(gpu::log_lock);
  taken.swap(from);
  from.clear();
  return taken.c_str();
}

EXPORT void gpugrad_note(const char* text) { gpu::notes = text; }

// The lines since the last call; valid until this thread's next call.
EXPORT const char* gpugrad_take_log() { return take(gpu::lines); }
EXPORT const char* gpugrad_take_complaints() { return take(gpu::complaints); }
