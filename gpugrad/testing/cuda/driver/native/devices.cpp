// The devices' properties: those of an H100.
#include <cuda_profiler_api.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"

using namespace gpu;

static thread_local int device = 0;
static std::set<std::pair<int, int>> peer_access;

int gpu::current_device() { return device; }

static bool exists(int d) { return d >= 0 && d < devices.value; }

struct Error {
  int code;
  const char* name;
  const char* text;
};

static const Error errors[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {35, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {200, "cudaErrorInvalidKernelImage", "device kernel image is invalid"},
    {217, "cudaErrorPeerAccessUnsupported", "peer access is not supported between these two devices"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {401, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {500, "cudaErrorSymbolNotFound", "named symbol not found"},
    {600, "cudaErrorNotReady", "device not ready"},
    {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {704, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {705, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {801, "cudaErrorNotSupported", "operation not supported"},
    {900, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {902, "cudaErrorStreamCaptureMerge", "operation would result in a merge of separate captures"},
    {903, "cudaErrorStreamCaptureUnmatched", "capture was not ended in the same stream as it began"},
    {904, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {905, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {906, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {999, "cudaErrorUnknown", "unknown error"},
};

static const Error& error_of(int code) {
  for (const Error& e : errors)
    if (e.code == code) return e;
  return errors[sizeof errors / sizeof *errors - 1];
}

extern "C" {

const char* cudaGetErrorName(cudaError_t e) { return error_of(e).name; }
const char* cudaGetErrorString(cudaError_t e) { return error_of(e).text; }
cudaError_t cudaGetLastError() { return cudaSuccess; }

CUresult cuGetErrorName(CUresult e, const char** to) {
  *to = error_of(e).name;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult e, const char** to) {
  *to = error_of(e).text;
  return CUDA_SUCCESS;
}

cudaError_t cudaDriverGetVersion(int* v) { return *v = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* v) { return *v = CUDART_VERSION, cudaSuccess; }
CUresult cuDriverGetVersion(int* v) { return *v = CUDA_VERSION, CUDA_SUCCESS; }
CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
// A real NVRTC in this process opens libcuda.so.1, and crashes if there is no such function.
CUresult cuGetExportTable(const void**, const CUuuid*) { return CUDA_ERROR_NOT_FOUND; }

cudaError_t cudaGetDeviceCount(int* n) { return *n = (int)devices.value, cudaSuccess; }
cudaError_t cudaGetDevice(int* d) { return *d = device, cudaSuccess; }
cudaError_t cudaSetDevice(int d) {
  if (!exists(d)) return cudaErrorInvalidDevice;
  device = d;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int d) {
  if (!exists(d)) return cudaErrorInvalidDevice;
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrMultiProcessorCount: *value = 132; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = 32; break;
    case cudaDevAttrMaxBlockDimX: case cudaDevAttrMaxBlockDimY: *value = 1024; break;
    case cudaDevAttrMaxBlockDimZ: *value = 64; break;
    case cudaDevAttrMaxGridDimX: *value = 2147483647; break;
    case cudaDevAttrMaxGridDimY: case cudaDevAttrMaxGridDimZ: *value = 65535; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 227 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = 228 << 10; break;
    case cudaDevAttrMaxRegistersPerBlock: *value = 65536; break;
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = 65536; break;
    case cudaDevAttrL2CacheSize: *value = 50 << 20; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    default: *value = 1;
  }
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int d) {
  if (!exists(d)) return cudaErrorInvalidDevice;
  memset(p, 0, sizeof *p);
  strcpy(p->name, "gpugrad made-up H100");
  p->totalGlobalMem = memory.value;
  p->major = 9;
  p->multiProcessorCount = 132;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsPerMultiProcessor = 2048;
  p->maxBlocksPerMultiProcessor = 32;
  p->sharedMemPerBlock = 48 << 10;
  p->sharedMemPerBlockOptin = 227 << 10;
  p->sharedMemPerMultiprocessor = 228 << 10;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->l2CacheSize = 50 << 20;
  p->memoryBusWidth = 5120;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 2147483647;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->pciBusID = d;
  p->concurrentKernels = p->unifiedAddressing = p->managedMemory = p->cooperativeLaunch = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* to, int length, int d) {
  snprintf(to, length, "0000:%02x:00.0", d);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int d, int peer) {
  if (!exists(d) || !exists(peer)) return cudaErrorInvalidDevice;
  *can = d != peer && peers.value;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (!exists(peer) || peer == device) return cudaErrorInvalidDevice;
  if (!peers.value) return cudaErrorPeerAccessUnsupported;
  std::lock_guard<std::recursive_mutex> hold(state);
  bool fresh = peer_access.insert({device, peer}).second;
  return fresh ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  std::lock_guard<std::recursive_mutex> hold(state);
  return peer_access.erase({device, peer}) ? cudaSuccess : cudaErrorPeerAccessNotEnabled;
}

cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

// A context stands for its device: 1 for device 0.
CUresult cuCtxGetCurrent(CUcontext* c) {
  *c = (CUcontext)(size_t)(device + 1);
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext c) {
  if (c) device = (int)(size_t)c - 1;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* d) { return *d = device, CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }
CUresult cuStreamGetCtx(CUstream s, CUcontext* c) {
  *c = (CUcontext)(size_t)(stream_of(s)->device + 1);
  return CUDA_SUCCESS;
}

}  // extern "C"
