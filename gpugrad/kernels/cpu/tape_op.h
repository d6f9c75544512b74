// An op of one or two small arrays: a ufunc's own loop, and the log entry.
#pragma once
#include "tape_record.h"

namespace {

struct Kernel {
  Loop loop;
  void* data;
};

struct Op {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* op;
  int inputs, saved;
  int reads[SAVED];    // what is saved: the input of that position, or -1 for the result
  int readers[SAVED];  // bits: the inputs for which it is kept; 0 for always
  npy_intp most;
  Kernel kernels[2];   // for float32 and float64
};

// An argument's array or number and its serial number, borrowed; false if Python must look at it.
inline bool argument(PyObject* x, PyObject** value, PyObject** id) {
  if (Py_TYPE(x) == its.tensor) {
    *value = slot(x, its.data);
    *id = slot(x, its.id);
    return *value && *id;
  }
  if (Py_TYPE(x) == its.view) {
    PyObject *root = slot(x, its.view_root), *seen = slot(x, its.view_seen);
    if (!root || Py_TYPE(root) != its.tensor || slot(root, its.data) != seen) return false;
    *value = slot(x, its.view_array);
    *id = slot(x, its.view_number);
    return *value && *id;
  }
  *value = x;
  *id = nullptr;
  return PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyBool_Check(x);
}

struct Listening {
  PyObject *recorder, *known, *log;
};

void let_go(Listening* listening, int count) {
  for (int k = 0; k < count; ++k) {
    Py_DECREF(listening[k].recorder);
    Py_DECREF(listening[k].known);
    Py_DECREF(listening[k].log);
  }
}

// The recorders that know one of the arguments: their number, or -1 if Python must record.
int who_listens(PyObject* const* ids, int count, Listening* out) {
  if (PyList_GET_SIZE(its.graphs) || PyList_GET_SIZE(its.checks)) return -1;
  PyObject* stack = current_stack();
  if (!stack) {
    PyErr_Clear();
    return 0;
  }
  Py_INCREF(stack);
  int n = 0;
  bool ok = PyList_GET_SIZE(stack) <= RECORDERS;
  for (Py_ssize_t k = 0; ok && k < PyList_GET_SIZE(stack); ++k) {
    PyObject* recorder = PyList_GET_ITEM(stack, k);
    Py_INCREF(recorder);
    PyObject* known = PyObject_GetAttr(recorder, s_known);
    int found = known && PyAnySet_CheckExact(known) ? 0 : -1;
    for (int i = 0; found == 0 && i < count; ++i)
      if (ids[i]) found = PySet_Contains(known, ids[i]);
    if (found > 0) {
      PyObject* log = PyObject_GetAttr(recorder, s_log);
      ok = log && PyList_CheckExact(log) && PySet_CheckExact(known) && n < RECORDERS;
      if (ok) {
        out[n++] = {recorder, known, log};
        continue;
      }
      Py_XDECREF(log);
    } else if (found == 0) {
      PyObject* dead = PyObject_GetAttr(recorder, s_dead);
      ok = dead && PyObject_IsTrue(dead) == 0;
      Py_XDECREF(dead);
    } else {
      ok = false;
    }
    Py_XDECREF(known);
    Py_DECREF(recorder);
  }
  Py_DECREF(stack);
  if (ok) return n;
  PyErr_Clear();
  let_go(out, n);
  return -1;
}

// Log the call for some recorders. `ids` has null where an argument is a number.
bool log_call(Op* self, PyObject* out, PyObject* const* values, PyObject* const* ids,
              Listening* listening, int count) {
  PyObject* zero = PyLong_FromLong(0);
  PyObject *every = PyTuple_New(self->inputs), *fits = PyTuple_New(self->inputs);
  PyObject *saved = PyTuple_New(self->saved), *entry = nullptr;
  bool ok = zero && every && fits && saved;
  int known = 0;
  for (int i = 0; ok && i < self->inputs; ++i) {
    const bool numbered = ids[i] && PyObject_IsTrue(ids[i]) > 0;
    known |= numbered << i;
    PyObject* id = ids[i] ? ids[i] : zero;
    Py_INCREF(id);
    PyTuple_SET_ITEM(every, i, id);
    Py_INCREF(Py_None);
    PyTuple_SET_ITEM(fits, i, Py_None);
  }
  for (int k = 0; ok && k < self->saved; ++k) {
    PyObject* value = self->reads[k] < 0 ? slot(out, its.data) : values[self->reads[k]];
    if (self->readers[k] && !(self->readers[k] & known)) value = Py_None;
    Py_INCREF(value);
    PyTuple_SET_ITEM(saved, k, value);
  }
  PyObject* serial = ok ? number_result(out) : nullptr;
  if (serial) entry = PyTuple_Pack(6, self->op, serial, every, fits, saved, Py_None);
  ok = entry != nullptr;
  const bool grown = ok && PyLong_AsLong(serial) % its.stride == 0;
  for (int k = 0; ok && k < count; ++k) {
    Listening& l = listening[k];
    if (grown) {  // it may have another log now
      PyObject* log = PyObject_GetAttr(l.recorder, s_log);
      ok = log != nullptr;
      if (ok && !PyList_CheckExact(log)) {
        PyErr_SetString(PyExc_TypeError, "the log of a recorder must be a list");
        ok = false;
      }
      if (!ok) {
        Py_XDECREF(log);
        break;
      }
      Py_DECREF(l.log);
      l.log = log;
    }
    ok = append(l.log, l.known, entry, serial);
  }
  Py_XDECREF(zero);
  Py_XDECREF(every);
  Py_XDECREF(fits);
  Py_XDECREF(saved);
  Py_XDECREF(serial);
  Py_XDECREF(entry);
  return ok;
}

// A Tensor of a new array, whose reference it takes; null without memory.
PyObject* wrap(PyObject* array) {
  PyObject* out = its.tensor->tp_alloc(its.tensor, 0);
  if (!out) {
    Py_DECREF(array);
    return nullptr;
  }
  *(PyObject**)((char*)out + its.data) = array;
  *(PyObject**)((char*)out + its.id) = PyLong_FromLong(0);
  return out;
}

// The result on arguments that the caller holds; None if the op's Python must run.
PyObject* compute(Op* self, PyObject* const* values, PyObject* const* ids) {
  PyArrayObject* first = nullptr;
  int type = -1;
  for (int i = 0; i < self->inputs; ++i) {
    if (!ids[i]) continue;
    const int kind = kind_of(values[i]);
    if (kind < 0 || (first && (kind != type || !same_shape(first, (PyArrayObject*)values[i]))))
      Py_RETURN_NONE;
    if (!first) first = (PyArrayObject*)values[i];
    type = kind;
  }
  const npy_intp n = first ? PyArray_SIZE(first) : 0;
  if (!first || n >= self->most) Py_RETURN_NONE;
  const Kernel& kernel = self->kernels[type == NPY_DOUBLE];
  if (!kernel.loop) Py_RETURN_NONE;

  Listening listening[RECORDERS];
  const int count = PyList_GET_SIZE(its.recorders) ? who_listens(ids, self->inputs, listening) : 0;
  if (count < 0) Py_RETURN_NONE;

  double numbers[2];
  char* at[3];
  npy_intp steps[3];
  const npy_intp size = type == NPY_FLOAT ? 4 : 8;
  bool ok = true;
  for (int i = 0; ok && i < self->inputs; ++i) {
    steps[i] = ids[i] ? size : 0;
    at[i] = ids[i] ? (char*)PyArray_DATA((PyArrayObject*)values[i]) : (char*)&numbers[i];
    ok = ids[i] || weak_number(values[i], type, &numbers[i]);
  }
  PyObject* array = ok ? new_like(first, type) : nullptr;
  PyObject* out = nullptr;
  if (array) {
    at[self->inputs] = (char*)PyArray_DATA((PyArrayObject*)array);
    steps[self->inputs] = size;
    if (std::fetestexcept(REPORTED)) std::feclearexcept(REPORTED);
    kernel.loop(at, &n, steps, kernel.data);
    if (std::fetestexcept(REPORTED)) {  // NumPy may warn of it, or raise
      std::feclearexcept(REPORTED);
      Py_DECREF(array);
    } else {
      out = wrap(array);
    }
  }
  if (!out) PyErr_Clear();  // without memory; Python says for what
  if (out && count && !log_call(self, out, values, ids, listening, count)) {
    Py_DECREF(out);
    out = nullptr;  // with an error
  } else if (!out) {
    Py_INCREF(Py_None);
    out = Py_None;
  }
  let_go(listening, count);
  return out;
}

// The result as a Tensor; None if the op's Python must run, which has seen no effect then.
PyObject* call_op(PyObject* callable, PyObject* const* args, size_t flags, PyObject* names) {
  Op* self = (Op*)callable;
  if (PyVectorcall_NARGS(flags) != self->inputs || names) Py_RETURN_NONE;
  PyObject *values[2], *ids[2], *out;
  for (int i = 0; i < self->inputs; ++i)
    if (!argument(args[i], &values[i], &ids[i])) Py_RETURN_NONE;
  for (int i = 0; i < self->inputs; ++i) {  // a finalizer or another thread may assign to them
    Py_INCREF(values[i]);
    Py_XINCREF(ids[i]);
  }
  out = compute(self, values, ids);
  for (int i = 0; i < self->inputs; ++i) {
    Py_DECREF(values[i]);
    Py_XDECREF(ids[i]);
  }
  return out;
}

void free_op(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(((Op*)self)->op);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef op_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Op, call), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot op_slots[] = {{Py_tp_dealloc, (void*)free_op},
                          {Py_tp_call, (void*)PyVectorcall_Call},
                          {Py_tp_members, op_members},
                          {0, nullptr}};
PyType_Spec op_spec = {"gpugrad.SmallOp", sizeof(Op), 0,
                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, op_slots};
PyTypeObject* op_type;

// small_op(op, inputs, most, kernels, saved): kernels are (loop, data) for float32 and float64,
// saved pairs of the position of an input, or -1, and the bits of the inputs that read it.
PyObject* small_op(PyObject*, PyObject* args) {
  PyObject *op, *saved;
  int inputs;
  Py_ssize_t most;
  unsigned long long l32, d32, l64, d64;
  if (!PyArg_ParseTuple(args, "Oin(KKKK)O!", &op, &inputs, &most, &l32, &d32, &l64, &d64,
                        &PyTuple_Type, &saved))
    return nullptr;
  Op* self = PyObject_New(Op, op_type);
  if (!self) return nullptr;
  Py_INCREF(op);
  self->op = op;
  self->call = call_op;
  self->inputs = inputs;
  self->most = most;
  self->kernels[0] = {(Loop)l32, (void*)d32};
  self->kernels[1] = {(Loop)l64, (void*)d64};
  self->saved = (int)PyTuple_GET_SIZE(saved);
  for (int k = 0; k < self->saved; ++k) {
    if (k >= SAVED || !PyArg_ParseTuple(PyTuple_GET_ITEM(saved, k), "ii", &self->reads[k],
                                        &self->readers[k])) {
      Py_DECREF(self);
      return PyErr_Occurred() ? nullptr : PyErr_Format(PyExc_ValueError, "too many saved values");
    }
  }
  return (PyObject*)self;
}

}  // namespace
