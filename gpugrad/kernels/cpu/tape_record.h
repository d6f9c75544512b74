// The log of a recorder: `record` of autodiff/recorder.py.
#pragma once
#include "tape_state.h"

namespace {

// The recorders of this thread, borrowed; null if there are none, and for an error.
PyObject* current_stack() {
  PyObject* stack = nullptr;
  if (PyContextVar_Get(its.stack, nullptr, &stack) < 0 || !stack) return nullptr;
  Py_DECREF(stack);  // its context holds it
  PyObject* thread = slot(stack, its.thread);
  if (!thread || PyLong_AsUnsignedLong(thread) != PyThread_get_thread_ident()) return nullptr;
  return stack;
}

// The serial number of a result, given now if it has none: a new reference.
PyObject* number_result(PyObject* out) {
  PyObject* serial = PyObject_TypeCheck(out, its.tensor) ? slot(out, its.id) : nullptr;
  if (!serial) return PyErr_Format(PyExc_TypeError, "record: a result is a Tensor with a number");
  Py_INCREF(serial);
  const int is_numbered = PyObject_IsTrue(serial);
  if (is_numbered > 0) return serial;
  Py_DECREF(serial);
  if (is_numbered < 0 || !(serial = Py_TYPE(its.next_id)->tp_iternext(its.next_id))) return nullptr;
  PyObject* old = slot(out, its.id);
  Py_INCREF(serial);
  *(PyObject**)((char*)out + its.id) = serial;
  Py_DECREF(old);
  bool ok = true;
  if (PyLong_AsLong(serial) % its.stride == 0) {
    PyObject* done = PyObject_CallOneArg(its.grow, out);
    ok = done != nullptr;
    Py_XDECREF(done);
  }
  if (ok) return serial;
  Py_DECREF(serial);
  return nullptr;
}

// Append an entry to a log; its result is known from now on.
bool append(PyObject* log, PyObject* known, PyObject* entry, PyObject* serial) {
  return PyList_Append(log, entry) == 0 && PySet_Add(known, serial) == 0;
}

// `record` in autodiff/recorder.py, which says what the arguments are.
PyObject* record(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 6 || !(PyTuple_Check(args[2]) || PyList_Check(args[2])))
    return PyErr_Format(PyExc_TypeError, "record: 6 arguments, of which the third is a sequence");
  PyObject *op = args[0], *out = args[1], *ids = args[2], *entry = nullptr, *serial = nullptr;
  PyObject* stack = current_stack();
  if (!stack) {
    if (PyErr_Occurred()) return nullptr;
    Py_RETURN_NONE;
  }
  Py_INCREF(stack);
  bool ok = true;
  for (Py_ssize_t k = 0; ok && k < PyList_GET_SIZE(stack); ++k) {
    PyObject* recorder = PyList_GET_ITEM(stack, k);
    Py_INCREF(recorder);
    PyObject* known = PyObject_GetAttr(recorder, s_known);
    int found = known ? 0 : -1;
    for (Py_ssize_t i = 0; found == 0 && i < PySequence_Fast_GET_SIZE(ids); ++i) {
      PyObject* id = PySequence_Fast_GET_ITEM(ids, i);
      found = PyAnySet_CheckExact(known) ? PySet_Contains(known, id) : PySequence_Contains(known, id);
    }
    if (found > 0) {
      if (!entry) {
        serial = number_result(out);
        entry = serial ? PyTuple_Pack(6, op, serial, ids, args[3], args[4], args[5]) : nullptr;
      }
      PyObject* log = entry ? PyObject_GetAttr(recorder, s_log) : nullptr;
      ok = log != nullptr;
      if (ok && PyList_CheckExact(log) && PySet_CheckExact(known)) {
        ok = append(log, known, entry, serial);
      } else if (ok) {
        PyObject* done;
        if (log == Py_None) {  // a ForwardAccumulator
          done = PyObject_CallMethodObjArgs(recorder, s_take, entry, out, nullptr);
        } else {
          done = PyList_Append(log, entry) == 0
                     ? PyObject_CallMethodObjArgs(known, s_add, serial, nullptr) : nullptr;
        }
        ok = done != nullptr;
        Py_XDECREF(done);
      }
      Py_XDECREF(log);
    } else if (found == 0) {
      PyObject* dead = PyObject_GetAttr(recorder, s_dead);
      const int some = dead ? PyObject_IsTrue(dead) : -1;
      Py_XDECREF(dead);
      ok = some >= 0;
      if (some > 0) {
        PyObject* done = PyObject_CallMethodObjArgs(recorder, s_bury, ids, out, nullptr);
        ok = done != nullptr;
        Py_XDECREF(done);
      }
    } else {
      ok = false;
    }
    Py_XDECREF(known);
    Py_DECREF(recorder);
  }
  Py_DECREF(stack);
  Py_XDECREF(entry);
  Py_XDECREF(serial);
  if (!ok) return nullptr;
  Py_RETURN_NONE;
}

}  // namespace
