// The tape's hot path: small ops, their log entries and the backward loop, with NumPy's bits.
//
// An op of small float arrays spends most of its time in the interpreter and in NumPy's checks. Here
// a ufunc's own loop runs on the arrays, and gradient rules run as lists of such loops, which
// registry/in_c.py reads from the records. Everything else is left to Python: an `Op` returns None
// before it has any effect, and `backward` calls a rule, or the loop in Python for one entry.
#include "tape_op.h"
#include "tape_rules.h"

namespace {

// ---- the backward loop --------------------------------------------------------------------

struct Pass {
  PyObject *grads, *needed, *not_popped, *stops, *owned, *xp, *one_entry, *failed, *add;
};

inline int contains(PyObject* set, PyObject* x) {
  return PyAnySet_CheckExact(set) ? PySet_Contains(set, x) : PySequence_Contains(set, x);
}

// The sum of the rows of `g` if that has the shape and dtype `fits`: NumPy adds row after row, to 0.
PyObject* rows_summed(PyArrayObject* g, int type, PyObject* fits) {
  PyObject *shape = PyTuple_GET_ITEM(fits, 0), *dtype = PyTuple_GET_ITEM(fits, 1);
  if (type < 0 || !PyTuple_CheckExact(shape) || !PyArray_DescrCheck(dtype)) return nullptr;
  const int more = PyArray_NDIM(g) - (int)PyTuple_GET_SIZE(shape);
  if (more <= 0 || ((PyArray_Descr*)dtype)->type_num != type) return nullptr;
  npy_intp n = 1;
  for (int k = more; k < PyArray_NDIM(g); ++k) {
    if (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k - more)) != PyArray_DIM(g, k)) return nullptr;
    n *= PyArray_DIM(g, k);
  }
  if (n < 2) return nullptr;  // which NumPy adds in pairs
  PyObject* sum = PyArray_ZEROS(PyArray_NDIM(g) - more, PyArray_DIMS(g) + more, type, 0);
  if (!sum) return nullptr;
  void *from = PyArray_DATA(g), *to = PyArray_DATA((PyArrayObject*)sum);
  for (npy_intp row = 0, rows = PyArray_SIZE(g) / n; row < rows; ++row) {
    if (type == NPY_FLOAT)
      for (npy_intp k = 0; k < n; ++k) ((float*)to)[k] += ((float*)from)[row * n + k];
    else
      for (npy_intp k = 0; k < n; ++k) ((double*)to)[k] += ((double*)from)[row * n + k];
  }
  return sum;
}

// Add a contribution, whose reference it takes, to the gradient of number `i`.
bool add(const Pass& pass, PyObject* i, PyObject* g, PyObject* fits) {
  PyObject* old = fits == Py_None ? PyDict_GetItemWithError(pass.grads, i) : nullptr;
  bool ok = !PyErr_Occurred();
  if (ok && fits == Py_None && !old) {
    ok = PyDict_SetItem(pass.grads, i, g) == 0;
    Py_DECREF(g);
    return ok;
  }
  if (ok && PyTuple_CheckExact(fits) && PyTuple_GET_SIZE(fits) == 2) {
    PyObject* summed = rows_summed((PyArrayObject*)g, kind_of(g), fits);
    if (summed) {
      Py_DECREF(g);
      return add(pass, i, summed, Py_None);
    }
    ok = !PyErr_Occurred();
  }
  int type = ok && fits == Py_None && old ? kind_of(old) : -1;
  if (type >= 0 && kind_of(g) == type && same_shape((PyArrayObject*)old, (PyArrayObject*)g)) {
    const npy_intp n = PyArray_SIZE((PyArrayObject*)g);
    const int is_owned = PySet_Contains(pass.owned, i);
    PyObject* total = is_owned ? old : new_like((PyArrayObject*)old, type);
    ok = is_owned >= 0 && total;
    if (ok) {
      void *a = PyArray_DATA((PyArrayObject*)old), *b = PyArray_DATA((PyArrayObject*)g);
      void* c = PyArray_DATA((PyArrayObject*)total);
      if (type == NPY_FLOAT)
        for (npy_intp k = 0; k < n; ++k) ((float*)c)[k] = ((float*)a)[k] + ((float*)b)[k];
      else
        for (npy_intp k = 0; k < n; ++k) ((double*)c)[k] = ((double*)a)[k] + ((double*)b)[k];
      if (!is_owned) {
        ok = PyDict_SetItem(pass.grads, i, total) == 0 && PySet_Add(pass.owned, i) == 0;
        Py_DECREF(total);
      }
    }
  } else if (ok) {
    PyObject* done = PyObject_CallFunctionObjArgs(pass.add, i, g, fits, nullptr);
    ok = done != nullptr;
    Py_XDECREF(done);
  }
  Py_DECREF(g);
  return ok;
}

// The rule of an input in Python, with the errors of the loop in Python.
PyObject* by_rule(const Pass& pass, PyObject* rule, PyObject* op, PyObject* g, PyObject* saved,
                  PyObject* params) {
  PyObject* args[] = {pass.xp, g, saved, params};
  PyObject* result = PyObject_Vectorcall(rule, args, 4, nullptr);
  if (result || !PyErr_ExceptionMatches(PyExc_Exception)) return result;
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  if (trace) PyException_SetTraceback(error, trace);
  PyObject* done = PyObject_CallFunctionObjArgs(pass.failed, error, op, g, params, nullptr);
  Py_XDECREF(done);
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(trace);
  if (done) PyErr_SetString(PyExc_SystemError, "an error in a rule was lost");
  return nullptr;
}

bool in_python(const Pass& pass, PyObject* entry) {
  PyObject* done = PyObject_CallOneArg(pass.one_entry, entry);
  Py_XDECREF(done);
  return done != nullptr;
}

bool pull(const Pass& pass, PyObject* entry) {
  if (!PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) != 6) return in_python(pass, entry);
  PyObject *op = PyTuple_GET_ITEM(entry, 0), *out = PyTuple_GET_ITEM(entry, 1);
  PyObject *ids = PyTuple_GET_ITEM(entry, 2), *fits = PyTuple_GET_ITEM(entry, 3);
  PyObject *saved = PyTuple_GET_ITEM(entry, 4), *params = PyTuple_GET_ITEM(entry, 5);
  if (!PyLong_CheckExact(out)) return in_python(pass, entry);
  PyObject* g = PyDict_GetItemWithError(pass.grads, out);
  if (!g) return !PyErr_Occurred();  // no target depends on this result
  if (Py_TYPE(g) != &PyArray_Type) return in_python(pass, entry);
  Rules* rules = rules_of(op);
  if (!rules) return !PyErr_Occurred() && in_python(pass, entry);
  const Py_ssize_t count = PyTuple_GET_SIZE(rules->rules);
  if (!PyTuple_CheckExact(ids) || !PyTuple_CheckExact(fits) || !PyTuple_CheckExact(saved) ||
      PyTuple_GET_SIZE(ids) != count || PyTuple_GET_SIZE(fits) != count)
    return in_python(pass, entry);

  const int stays = PySet_Contains(pass.not_popped, out);
  if (stays < 0) return false;
  if (stays) {
    const int stops = PySet_Contains(pass.stops, out);
    if (stops) return stops > 0;
  }
  Py_INCREF(g);
  if (!stays && PyDict_DelItem(pass.grads, out) < 0) {
    Py_DECREF(g);
    return false;
  }

  const int type = kind_of(g);
  const Py_ssize_t n = PyTuple_GET_SIZE(saved);
  int kinds = type >= 0 && PyArray_SIZE((PyArrayObject*)g) <= its.few;
  const bool small = type >= 0 && params == Py_None && n <= SAVED && count <= RULES;
  for (Py_ssize_t k = 0; small && k < n; ++k) {
    PyObject* value = PyTuple_GET_ITEM(saved, k);
    double number;
    int kind = OTHER;
    if (value == Py_None) kind = NONE;
    else if (Py_TYPE(value) == &PyArray_Type)
      kind = kind_of(value) == type && same_shape((PyArrayObject*)g, (PyArrayObject*)value)
                 ? ARRAY : OTHER;
    else if (weak_number(value, type, &number)) kind = NUMBER;
    kinds |= kind << (2 * k + 1);
  }
  bool ok = true;
  for (Py_ssize_t k = 0; ok && k < count; ++k) {
    PyObject *rule = PyTuple_GET_ITEM(rules->rules, k), *i = PyTuple_GET_ITEM(ids, k);
    if (rule == Py_None) continue;
    const int wanted = contains(pass.needed, i);
    ok = wanted >= 0;
    if (wanted <= 0) continue;
    PyObject* result = nullptr;
    Program* p = small ? program_of(rules, op, (int)k, type, kinds) : nullptr;
    if (p && p->steps >= 0) result = run(*p, (PyArrayObject*)g, saved, type);
    else if (!PyErr_Occurred()) result = by_rule(pass, rule, op, g, saved, params);
    ok = result != nullptr;
    if (!ok) break;
    if (result == Py_None) Py_DECREF(result);
    else ok = add(pass, i, result, PyTuple_GET_ITEM(fits, k));
  }
  Py_DECREF(g);
  return ok;
}

// `backward` in autodiff/backward.py, from the last entry of a log to the first, on NumPy arrays.
PyObject* backward(PyObject*, PyObject* args) {
  PyObject* log;
  Pass pass;
  if (!PyArg_ParseTuple(args, "O!O!OO!O!O!OOOO", &PyList_Type, &log, &PyDict_Type, &pass.grads,
                        &pass.needed, &PySet_Type, &pass.not_popped, &PySet_Type, &pass.stops,
                        &PySet_Type, &pass.owned, &pass.xp, &pass.one_entry, &pass.failed,
                        &pass.add))
    return nullptr;
  for (Py_ssize_t k = PyList_GET_SIZE(log) - 1; k >= 0 && k < PyList_GET_SIZE(log); --k) {
    PyObject* entry = PyList_GET_ITEM(log, k);
    Py_INCREF(entry);
    const bool ok = pull(pass, entry);
    Py_DECREF(entry);
    if (!ok || ((k & 1023) == 0 && PyErr_CheckSignals() < 0)) return nullptr;
  }
  if (std::fetestexcept(REPORTED)) std::feclearexcept(REPORTED);
  Py_RETURN_NONE;
}

// ---- the module ---------------------------------------------------------------------------

// The place of an attribute of __slots__ in the objects of a type; -1 with an error.
Py_ssize_t place(PyObject* type, const char* name) {
  PyObject* member = PyObject_GetAttrString(type, name);
  if (!member) return -1;
  const bool is_slot = Py_TYPE(member) == &PyMemberDescr_Type;
  const Py_ssize_t offset = is_slot ? ((PyMemberDescrObject*)member)->d_member->offset : -1;
  Py_DECREF(member);
  if (!is_slot) PyErr_Format(PyExc_TypeError, "%s is no slot", name);
  return offset;
}

// setup(tensor, view, variable, stack_type, stack, recorders, graphs, checks, scopes, next_id, grow,
// stride, few, rules_of, program_of)
PyObject* setup(PyObject*, PyObject* args) {
  PyObject *tensor, *view, *variable, *stack_type;
  if (!PyArg_ParseTuple(args, "OOOOOOOOO!OOllOO", &tensor, &view, &variable, &stack_type, &its.stack,
                        &its.recorders, &its.graphs, &its.checks, &PyDict_Type, &its.scopes,
                        &its.next_id, &its.grow, &its.stride, &its.few, &its.rules_of, &its.program_of))
    return nullptr;
  Py_INCREF(args);  // all of them, for good
  its.tensor = (PyTypeObject*)tensor;
  its.view = (PyTypeObject*)view;
  its.variable = (PyTypeObject*)variable;
  its.data = place(tensor, "_data");
  its.id = place(tensor, "_id");
  its.view_seen = place(view, "_seen");
  its.view_root = place(view, "root");
  its.value = place(variable, "_value");
  its.thread = place(stack_type, "thread");
  its.table = PyDict_New();
  if (PyErr_Occurred()) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"record", (PyCFunction)(void (*)(void))record, METH_FASTCALL, nullptr},
    {"small_op", small_op, METH_VARARGS, nullptr},
    {"backward", backward, METH_VARARGS, nullptr},
    {"setup", setup, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "gpugrad tape in C", nullptr, -1, methods,
                          nullptr, nullptr, nullptr, nullptr};

}  // namespace

// The module; None if it was compiled for another Python or NumPy.
extern "C" PyObject* gpugrad_tape() {
  if (std::strncmp(Py_GetVersion(), PY_VERSION, sizeof(PY_VERSION) - 1)) Py_RETURN_NONE;
  if (PyArray_ImportNumPyAPI() < 0) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  op_type = (PyTypeObject*)PyType_FromSpec(&op_spec);
  rules_type = (PyTypeObject*)PyType_FromSpec(&rules_spec);
  s_known = PyUnicode_InternFromString("known");
  s_log = PyUnicode_InternFromString("log");
  s_dead = PyUnicode_InternFromString("dead");
  s_take = PyUnicode_InternFromString("take");
  s_touched = PyUnicode_InternFromString("touched");
  s_bury = PyUnicode_InternFromString("bury");
  s_add = PyUnicode_InternFromString("add");
  if (PyErr_Occurred()) return nullptr;
  return PyModule_Create(&definition);
}
