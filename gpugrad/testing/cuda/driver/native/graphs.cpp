// Graphs: lists of recorded work, which a launch executes in the order of its recording.
#include <stdio.h>

#include "driver.h"

using namespace gpu;

typedef std::shared_ptr<std::vector<Work>> List;

static std::map<void*, List> lists;  // of graphs and of executable graphs

static List list_of(void* handle) {
  std::lock_guard<std::recursive_mutex> hold(state);
  auto found = lists.find(handle);
  return found == lists.end() ? nullptr : found->second;
}

static void* keep(List list) {
  std::lock_guard<std::recursive_mutex> hold(state);
  static size_t last = 0x1000;
  void* handle = (void*)(last += 16);
  lists[handle] = list;
  return handle;
}

static cudaError_t forget(void* handle) {
  List last;  // destroyed without the lock: a destructor may call Python
  std::lock_guard<std::recursive_mutex> hold(state);
  auto found = lists.find(handle);
  if (found == lists.end()) return cudaErrorInvalidValue;
  last.swap(found->second);
  lists.erase(found);
  return cudaSuccess;
}

static cudaError_t run_all(const List& list, Stream* s) {
  for (Work& work : *list) {
    log_work(work, s, "replay");
    if (cudaError_t e = work.run()) return e;
  }
  return cudaSuccess;
}

extern "C" {

cudaGraph_t gpugrad_new_graph(void* work) {
  auto* recorded = (std::vector<Work>*)work;
  return (cudaGraph_t)keep(std::make_shared<std::vector<Work>>(std::move(*recorded)));
}

cudaError_t cudaGraphDestroy(cudaGraph_t g) { return forget(g); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g) { return forget(g); }

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* to, cudaGraph_t graph, unsigned long long) {
  if (cudaError_t e = unsafe_during_capture()) return e;
  List list = list_of(graph);
  if (!list) return cudaErrorInvalidValue;
  *to = (cudaGraphExec_t)keep(list);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  List list = list_of(graph);
  if (!list) return cudaErrorInvalidValue;
  Stream* s = stream_of(stream);
  dim3 nodes(list->size());
  return enqueue(s, {"graph", "launch", nodes, {}, 0, [=] { return run_all(list, s); }});
}
cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t) {
  return list_of(graph) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned) {
  List list = list_of(graph);
  FILE* file = list ? fopen(path, "w") : nullptr;
  if (!file) return cudaErrorInvalidValue;
  fprintf(file, "digraph dot {\n");
  for (size_t i = 0; i < list->size(); ++i)
    fprintf(file, "\"node_%zu\" [label=\"%s %s\"];\n", i, (*list)[i].kind.c_str(),
            (*list)[i].name.c_str());
  fprintf(file, "}\n");
  fclose(file);
  return cudaSuccess;
}

}  // extern "C"
