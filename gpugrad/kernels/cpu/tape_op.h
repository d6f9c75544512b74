// An op of one or two small arrays: a ufunc's own loop or a formula in Python, and the log entry.
#pragma once
#include "tape_record.h"

namespace {

struct Kernel {
  Loop loop;
  void* data;
};

const int RESULT = -1, SHAPE = 8;

struct Op {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* op;
  PyObject* formula;  // of arrays, in Python, if the op has no loops; else null
  int inputs, saved;
  bool by_element;     // whether the result has the shape of the arguments
  int reads[SAVED];    // what is saved: the input of that position, RESULT, or SHAPE + the position
  int readers[SAVED];  // bits: the inputs for which it is kept; 0 for always
  npy_intp most;
  Kernel kernels[2];   // for float32 and float64
};

// An argument's array or number and its serial number, borrowed; false if Python must look at it.
inline bool argument(PyObject* x, PyObject** value, PyObject** id) {
  const bool is_view = Py_TYPE(x) == its.view;
  if (is_view) {
    PyObject *root = slot(x, its.view_root), *seen = slot(x, its.view_seen);
    if (!root || Py_TYPE(root) != its.tensor || slot(root, its.data) != seen) return false;
  }
  if (is_view || Py_TYPE(x) == its.tensor) {
    *value = slot(x, its.data);
    *id = slot(x, its.id);
    return *value && *id;
  }
  if (Py_TYPE(x) == its.variable) {  // of which threads may have values of their own
    *value = slot(x, its.value);
    *id = slot(x, its.id);
    return *value && *id && !PyDict_GET_SIZE(its.scopes);
  }
  *value = x;
  *id = nullptr;
  return PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyBool_Check(x);
}

// Tell the recorders of this thread that do not know a Variable that it is read; false for an error.
bool tell(PyObject* variable, PyObject* id) {
  PyObject* stack = current_stack();
  if (!stack) return !PyErr_Occurred();
  Py_INCREF(stack);
  bool ok = true;
  for (Py_ssize_t k = 0; ok && k < PyList_GET_SIZE(stack); ++k) {
    PyObject* recorder = PyList_GET_ITEM(stack, k);
    Py_INCREF(recorder);
    PyObject* known = PyObject_GetAttr(recorder, s_known);
    ok = known != nullptr;
    if (ok && !(PyAnySet_CheckExact(known) && PySet_Contains(known, id) > 0)) {
      PyObject* done = PyObject_CallMethodOneArg(recorder, s_touched, variable);
      ok = done != nullptr;
      Py_XDECREF(done);
    }
    Py_XDECREF(known);
    Py_DECREF(recorder);
  }
  Py_DECREF(stack);
  return ok;
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

PyObject* shape_of(PyArrayObject* a) {
  PyObject* shape = PyTuple_New(PyArray_NDIM(a));
  for (int k = 0; shape && k < PyArray_NDIM(a); ++k) {
    PyObject* n = PyLong_FromSsize_t(PyArray_DIM(a, k));
    if (!n) Py_CLEAR(shape);
    else PyTuple_SET_ITEM(shape, k, n);
  }
  return shape;
}

// The shape and dtype that an argument's gradient is summed to; None, borrowed, if it has them.
PyObject* fit_of(PyObject* value, PyObject* result, bool by_element) {
  PyArrayObject* a = (PyArrayObject*)value;
  if (!by_element || same_shape(a, (PyArrayObject*)result)) return Py_None;
  PyObject* shape = shape_of(a);
  return shape ? Py_BuildValue("NO", shape, (PyObject*)PyArray_DESCR(a)) : nullptr;
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
    PyObject* fit = numbered ? fit_of(values[i], slot(out, its.data), self->by_element) : Py_None;
    ok = fit != nullptr;
    if (fit == Py_None) Py_INCREF(fit);
    PyTuple_SET_ITEM(fits, i, fit);
  }
  for (int k = 0; ok && k < self->saved; ++k) {
    const int read = self->reads[k];
    PyObject* value = read == RESULT ? slot(out, its.data) : values[read % SHAPE];
    if (read >= SHAPE) {
      value = shape_of((PyArrayObject*)value);
      ok = value != nullptr;
    } else {
      if (self->readers[k] && !(self->readers[k] & known)) value = Py_None;
      Py_INCREF(value);
    }
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

// The result of the loop, an array; null if Python must compute it, without an error.
PyObject* by_loop(Op* self, PyObject* const* values, PyObject* const* ids, PyArrayObject* like,
                  int type) {
  const Kernel& kernel = self->kernels[type == NPY_DOUBLE];
  double numbers[2];
  char* at[3];
  npy_intp steps[3], next[3], n = PyArray_SIZE(like), rows = 1;
  const npy_intp size = type == NPY_FLOAT ? 4 : 8;
  for (int i = 0; i < self->inputs; ++i) {
    steps[i] = ids[i] ? size : 0;
    at[i] = ids[i] ? (char*)PyArray_DATA((PyArrayObject*)values[i]) : (char*)&numbers[i];
    if (!ids[i] && !weak_number(values[i], type, &numbers[i])) return nullptr;
    const npy_intp length = ids[i] ? PyArray_SIZE((PyArrayObject*)values[i]) : n;
    next[i] = ids[i] && length == PyArray_SIZE(like) ? 1 : 0;
    if (length < n) rows = n / length, n = length;
  }
  PyObject* array = new_like(like, type);
  if (!array) return nullptr;
  at[self->inputs] = (char*)PyArray_DATA((PyArrayObject*)array);
  steps[self->inputs] = size;
  next[self->inputs] = 1;
  if (std::fetestexcept(REPORTED)) std::feclearexcept(REPORTED);
  for (npy_intp row = 0; row < rows; ++row) {
    kernel.loop(at, &n, steps, kernel.data);
    for (int i = 0; i <= self->inputs; ++i) at[i] += next[i] * n * size;
  }
  if (!std::fetestexcept(REPORTED)) return array;
  std::feclearexcept(REPORTED);  // NumPy may warn of it, or raise
  Py_DECREF(array);
  return nullptr;
}

// The same by the formula in Python.
PyObject* by_formula(Op* self, PyObject* const* values, PyArrayObject* like, int type) {
  PyObject* array = PyObject_Vectorcall(self->formula, values, self->inputs, nullptr);
  if (!array) return nullptr;
  const bool fits = Py_TYPE(array) == &PyArray_Type &&
                    PyArray_DESCR((PyArrayObject*)array)->type_num == type &&
                    (!self->by_element || same_shape((PyArrayObject*)array, like));
  if (fits) return array;
  Py_DECREF(array);
  return nullptr;
}

// The result on arguments that the caller holds; None if the op's Python must run.
PyObject* compute(Op* self, PyObject* const* values, PyObject* const* ids) {
  PyArrayObject* like = nullptr;  // with the shape of the result, if that is by element
  int type = -1;
  for (int i = 0; i < self->inputs; ++i) {
    if (!ids[i]) {
      if (self->formula) Py_RETURN_NONE;
      continue;
    }
    PyArrayObject* a = (PyArrayObject*)values[i];
    const int kind = kind_of(values[i]);
    if (kind < 0 || (like && kind != type) || PyArray_SIZE(a) >= self->most) Py_RETURN_NONE;
    if (like && self->by_element && !(self->formula ? same_shape(like, a)
                                      : is_row(like, a) || is_row(a, like)))
      Py_RETURN_NONE;
    if (!like || PyArray_NDIM(a) > PyArray_NDIM(like)) like = a;
    type = kind;
  }
  if (!like || !(self->formula || self->kernels[type == NPY_DOUBLE].loop)) Py_RETURN_NONE;

  Listening listening[RECORDERS];
  const int count = PyList_GET_SIZE(its.recorders) ? who_listens(ids, self->inputs, listening) : 0;
  if (count < 0) Py_RETURN_NONE;

  PyObject* array = self->formula ? by_formula(self, values, like, type)
                                  : by_loop(self, values, ids, like, type);
  PyObject* out = array ? wrap(array) : nullptr;
  if (!out && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {  // Ctrl-C
      let_go(listening, count);
      return nullptr;
    }
    PyErr_Clear();  // Python raises it again, and says of what
  }
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
  bool told = true;
  for (int i = 0; told && i < self->inputs && PyList_GET_SIZE(its.recorders); ++i)
    if (Py_TYPE(args[i]) == its.variable) told = tell(args[i], ids[i]);
  out = told ? compute(self, values, ids) : nullptr;
  for (int i = 0; i < self->inputs; ++i) {
    Py_DECREF(values[i]);
    Py_XDECREF(ids[i]);
  }
  return out;
}

void free_op(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(((Op*)self)->op);
  Py_XDECREF(((Op*)self)->formula);
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

// small_op(op, inputs, most, formula, by_element, kernels, saved): a formula or None, kernels
// (loop, data) for float32 and float64, saved pairs of what is read, as in Op, and the bits of the
// inputs for which it is.
PyObject* small_op(PyObject*, PyObject* args) {
  PyObject *op, *formula, *saved;
  int inputs, by_element;
  Py_ssize_t most;
  unsigned long long l32, d32, l64, d64;
  if (!PyArg_ParseTuple(args, "OinOp(KKKK)O!", &op, &inputs, &most, &formula, &by_element, &l32, &d32, &l64, &d64,
                        &PyTuple_Type, &saved))
    return nullptr;
  Op* self = PyObject_New(Op, op_type);
  if (!self) return nullptr;
  Py_INCREF(op);
  self->op = op;
  self->formula = formula == Py_None ? nullptr : formula;
  Py_XINCREF(self->formula);
  self->by_element = by_element;
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
