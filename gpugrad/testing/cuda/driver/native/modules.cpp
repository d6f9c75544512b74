// Modules and kernel launches. A module's image is a text that libraries/nvrtc.py writes, by lines:
// a title, the shim's schedule, the shim's runtime and the compiled kernels (two shared libraries),
// the number of the first kernel in its library, and a line for each kernel: its name and, after
// tabs, the place, the bytes of an element and the number of axes of each parameter that is an array.
#include <dlfcn.h>
#include <string.h>

#include <sstream>

#include "driver.h"

using namespace gpu;

static const char MAGIC[] = "gpugrad host kernels";
static const int STATIC_LIMIT = 48 << 10, DYNAMIC_LIMIT = 227 << 10;
static const int COOPERATIVE = 16;  // added to a schedule, as in cudashim.cpp
static std::mutex running;  // the shim holds the state of one running block

namespace {

struct Array {
  int place, item, axes;
};

struct Function {
  std::string name;
  std::vector<Array> arrays;
  const char* (*run)(void**, const unsigned*, size_t, int) = nullptr;  // null: it does nothing
  int (*sizes)(size_t*) = nullptr;  // of the parameters in bytes
  int schedule = 0;
  int fixed = 0;  // bytes of static shared memory of all kernels in its source
  int dynamic_limit = STATIC_LIMIT;
  bool opted_in = false;
};

struct Module {
  void* library = nullptr;
  int schedule = 0, first = 0;
  std::vector<std::string> names;
  std::vector<std::vector<Array>> arrays;  // by kernel
  std::map<std::string, Function> functions;
};

CUresult load(Module& m, const char* image) {
  std::istringstream lines(image);
  std::string line, runtime, kernels;
  std::getline(lines, line);
  if (line != MAGIC) return CUDA_ERROR_INVALID_IMAGE;
  std::getline(lines, line);
  m.schedule = std::stoi(line);
  std::getline(lines, runtime);
  std::getline(lines, kernels);
  std::getline(lines, line);
  m.first = std::stoi(line);
  while (std::getline(lines, line)) {
    size_t end = line.find('\t');
    m.names.push_back(line.substr(0, end));
    std::istringstream numbers(end == std::string::npos ? "" : line.substr(end));
    std::vector<Array> arrays;
    for (Array a; numbers >> a.place >> a.item >> a.axes;) arrays.push_back(a);
    m.arrays.push_back(arrays);
  }
  if (kernels.empty()) return CUDA_SUCCESS;  // null kernels
  if (dlopen(runtime.c_str(), RTLD_NOW | RTLD_GLOBAL))
    m.library = dlopen(kernels.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!m.library) complain(dlerror());
  return m.library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult refuse(const Function& f, const std::string& why, CUresult code) {
  complain(f.name + ": " + why);
  return code;
}

CUresult check(const Function& f, dim3 grid, dim3 block, unsigned shared) {
  if (!grid.x || !grid.y || !grid.z || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
    return refuse(f, "a grid of this size cannot be launched", CUDA_ERROR_INVALID_VALUE);
  unsigned long threads = (unsigned long)block.x * block.y * block.z;
  if (!threads || threads > 1024 || block.z > 64)
    return refuse(f, "a block of this size cannot be launched", CUDA_ERROR_INVALID_VALUE);
  if (shared > (unsigned)f.dynamic_limit)
    return refuse(f, std::to_string(shared) + " bytes of shared memory, and " +
                         std::to_string(f.fixed) + " of its own: the limit is " +
                         std::to_string(f.dynamic_limit), CUDA_ERROR_INVALID_VALUE);
  return CUDA_SUCCESS;
}

// The work of a launch; it copies the arguments, as CUDA does. `schedule` is the shim's.
std::function<cudaError_t()> bind(const Function& f, dim3 grid, dim3 block, unsigned shared,
                                  int schedule, void** arguments) {
  if (!f.run) return [] { return cudaSuccess; };
  size_t sizes[1024];
  int n = f.sizes(sizes);
  auto copies = std::make_shared<std::vector<std::vector<char>>>();
  for (int i = 0; i < n; ++i)
    copies->emplace_back((char*)arguments[i], (char*)arguments[i] + sizes[i]);
  return [&f, copies, grid, block, shared, schedule] {
    unsigned size[] = {grid.x, grid.y, grid.z, block.x, block.y, block.z};
    std::vector<void*> pointers;
    for (auto& c : *copies) pointers.push_back(c.data());
    std::lock_guard<std::mutex> hold(running);
    const char* wrong = f.run(pointers.data(), size, shared, schedule);
    if (!wrong) return cudaSuccess;
    complain(f.name + ": " + wrong);
    if (strstr(wrong, "misaligned")) return cudaErrorMisalignedAddress;
    return strstr(wrong, "outside") ? cudaErrorIllegalAddress : cudaErrorLaunchFailure;
  };
}

// For the log: an element's bytes, the shape and the strides of each array, as CuPy's CArray has them.
std::string describe(const Function& f, void** arguments) {
  std::string text;
  for (const Array& a : logging.value ? f.arrays : std::vector<Array>{}) {
    auto* numbers = (const ptrdiff_t*)arguments[a.place] + 2;  // after its address and size
    text += std::to_string(a.item);
    for (int i = 0; i < 2 * a.axes; ++i) text += "," + std::to_string(numbers[i]);
    text += ";";
  }
  return text;
}

CUresult launch(const Function& f, dim3 grid, dim3 block, unsigned shared, int schedule,
                CUstream stream, void** arguments) {
  if (CUresult e = check(f, grid, block, shared)) return e;
  Work work{"kernel", f.name, grid, block, shared,
            bind(f, grid, block, shared, schedule, arguments), nullptr, describe(f, arguments)};
  return (CUresult)enqueue(stream_of(stream), std::move(work));
}

}  // namespace

extern "C" {

CUresult cuModuleLoadData(CUmodule* to, const void* image) {
  auto* m = new Module;
  *to = (CUmodule)m;
  return load(*m, (const char*)image);
}
CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }  // a graph may still hold its kernels

CUresult cuModuleGetFunction(CUfunction* to, CUmodule module, const char* name) {
  auto* m = (Module*)module;
  std::lock_guard<std::recursive_mutex> hold(state);
  for (size_t k = 0; k < m->names.size(); ++k) {
    if (m->names[k] != name) continue;
    Function& f = m->functions[name];
    f.name = name;
    f.arrays = m->arrays[k];
    f.schedule = m->schedule;
    std::string number = std::to_string(m->first + k);
    if (m->library) {
      f.run = (decltype(f.run))dlsym(m->library, ("shim_run_" + number).c_str());
      f.sizes = (decltype(f.sizes))dlsym(m->library, ("shim_sizes_" + number).c_str());
      f.fixed = ((int (*)())dlsym(m->library, ("shim_static_" + number).c_str()))();
      if (!f.opted_in) f.dynamic_limit = STATIC_LIMIT - f.fixed;
    }
    *to = (CUfunction)&f;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLaunchKernel(
    CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
    unsigned bz, unsigned shared, CUstream stream, void** arguments, void**) {
  const Function& f = *(Function*)function;
  return launch(f, dim3(gx, gy, gz), dim3(bx, by, bz), shared, f.schedule, stream, arguments);
}
CUresult cuLaunchCooperativeKernel(
    CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
    unsigned bz, unsigned shared, CUstream stream, void** arguments) {
  const Function& f = *(Function*)function;
  int schedule = f.schedule + COOPERATIVE;  // CuPy has checked that all blocks fit
  return launch(f, dim3(gx, gy, gz), dim3(bx, by, bz), shared, schedule, stream, arguments);
}

CUresult cuFuncGetAttribute(int* to, CUfunction_attribute attribute, CUfunction function) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *to = 1024; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *to = ((Function*)function)->dynamic_limit;
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *to = ((Function*)function)->fixed; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *to = 32; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: case CU_FUNC_ATTRIBUTE_PTX_VERSION: *to = 90; break;
    default: *to = 0;
  }
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
  Function& f = *(Function*)function;
  if (value + f.fixed > DYNAMIC_LIMIT)
    return refuse(f, "so much shared memory does not exist", CUDA_ERROR_INVALID_VALUE);
  f.dynamic_limit = value;
  f.opted_in = true;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* to, CUfunction, int block, size_t) {
  return *to = block > 0 ? 2048 / block : 1, CUDA_SUCCESS;
}
CUresult cuOccupancyMaxPotentialBlockSize(
    int* grid, int* block, CUfunction, CUoccupancyB2DSize, size_t, int) {
  return *grid = 132, *block = 1024, CUDA_SUCCESS;
}

}  // extern "C"
