// NVIDIA's libraries (cuBLAS, NVRTC and others) are functions in Python: see libraries/.
#include <Python.h>

#include "driver.h"

using namespace gpu;

#if PY_VERSION_HEX < 0x030D0000
#define Py_IsFinalizing _Py_IsFinalizing
#endif

// Whether Python's functions cannot be called any more: CuPy destroys its handles at the end.
EXPORT int gpugrad_has_ended() { return !Py_IsInitialized() || Py_IsFinalizing(); }

// The address of the function for a symbol of a library. A stub asks for it on its first call.
EXPORT void* gpugrad_resolve(const char* library, const char* symbol) {
  PyGILState_STATE gil = PyGILState_Ensure();
  void* address = nullptr;
  PyObject* module = PyImport_ImportModule("gpugrad.testing.cuda.driver.libraries");
  PyObject* result =
      module ? PyObject_CallMethod(module, "address_of", "ss", library, symbol) : nullptr;
  if (result) address = PyLong_AsVoidPtr(result);
  if (PyErr_Occurred()) PyErr_Print();
  Py_XDECREF(result);
  Py_XDECREF(module);
  PyGILState_Release(gil);
  return address;
}

// Enqueues a call of a Python function, as a library's work on a stream.
EXPORT int gpugrad_enqueue(void* stream, const char* library, const char* name, void* function) {
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_INCREF((PyObject*)function);
  std::shared_ptr<PyObject> held((PyObject*)function, [](PyObject* object) {
    if (gpugrad_has_ended()) return;
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF(object);
    PyGILState_Release(gil);
  });
  PyGILState_Release(gil);
  auto run = [held] {
    if (gpugrad_has_ended()) return cudaSuccess;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject* result = PyObject_CallNoArgs(held.get());
    if (!result) PyErr_Print();
    cudaError_t code = result ? cudaSuccess : cudaErrorUnknown;
    Py_XDECREF(result);
    PyGILState_Release(gil);
    return code;
  };
  return enqueue(stream_of((cudaStream_t)stream), {library, name, {}, {}, 0, run});
}
