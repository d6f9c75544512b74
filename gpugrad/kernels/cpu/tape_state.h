// What all parts of the tape in C share: Python's objects, and small arrays of NumPy.
#pragma once
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <numpy/arrayobject.h>

#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstring>

namespace {

typedef void (*Loop)(char** arrays, const npy_intp* n, const npy_intp* steps, void* data);

const int STEPS = 24, VALUES = 40, SAVED = 6, RULES = 4, RECORDERS = 8;
const npy_intp MOST = 4096;  // elements; below, a thread that waits for the lock waits for little
const int REPORTED = FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID;

// What `setup` was given, and where the slots of Python's objects are.
struct {
  PyTypeObject *tensor, *view, *variable;
  Py_ssize_t data, id, view_seen, view_root, value, thread;
  PyObject *stack, *recorders, *graphs, *checks, *scopes, *next_id, *grow;
  PyObject *table, *rules_of, *program_of;
  long stride, few;
} its;

PyObject *s_known, *s_log, *s_dead, *s_take, *s_bury, *s_touched, *s_add;

inline PyObject* slot(PyObject* x, Py_ssize_t offset) { return *(PyObject**)((char*)x + offset); }

// A small array of float32 or float64 whose elements lie in a row: the number of its type, or -1.
// Of one element NumPy makes scalars, whose arithmetic is not its loops'.
inline int kind_of(PyObject* x) {
  if (Py_TYPE(x) != &PyArray_Type) return -1;
  PyArrayObject* a = (PyArrayObject*)x;
  const int type = PyArray_DESCR(a)->type_num;
  if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !PyArray_ISCARRAY_RO(a)) return -1;
  const npy_intp n = PyArray_SIZE(a);
  return n > 1 && n <= MOST ? type : -1;
}

inline bool same_shape(PyArrayObject* a, PyArrayObject* b) {
  return PyArray_NDIM(a) == PyArray_NDIM(b) &&
         PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(b), PyArray_NDIM(a));
}

// Whether NumPy broadcasts `b` along further axes of `a` alone, as the rows of a matrix.
inline bool is_row(PyArrayObject* a, PyArrayObject* b) {
  const int more = PyArray_NDIM(a) - PyArray_NDIM(b);
  return more >= 0 && PyArray_CompareLists(PyArray_DIMS(a) + more, PyArray_DIMS(b), PyArray_NDIM(b));
}

inline PyObject* new_like(PyArrayObject* a, int type) {
  return PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(type), PyArray_NDIM(a),
                              PyArray_DIMS(a), nullptr, nullptr, 0, nullptr);
}

// Whether a Python number takes a dtype without a warning; it is then written to `value`.
bool weak_number(PyObject* x, int type, void* value) {
  double number;
  if (PyFloat_CheckExact(x)) {
    number = PyFloat_AS_DOUBLE(x);
    if (std::fabs(number) > 3.4e38 && std::isfinite(number)) return false;
    if (type == NPY_FLOAT && number != 0 && std::fabs(number) < 1.2e-38) return false;
  } else if (PyLong_CheckExact(x) || PyBool_Check(x)) {
    int over;
    const long long whole = PyLong_AsLongLongAndOverflow(x, &over);
    if (over || whole > (1LL << 53) || whole < -(1LL << 53)) return false;
    number = (double)whole;
  } else {
    return false;
  }
  if (type == NPY_FLOAT) *(float*)value = (float)number;
  else *(double*)value = number;
  return true;
}

}  // namespace
