// The tape's hot path: small ops, their log entries and the backward loop, with NumPy's bits.
//
// An op of small float arrays spends most of its time in the interpreter and in NumPy's checks. Here
// a ufunc's own loop runs on the arrays, and gradient rules run as lists of such loops, which
// registry/in_c.py reads from the records. Everything else is left to Python: an `Op` returns None
// before it has any effect, and `backward` calls a rule, or the loop in Python for one entry.
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
  PyTypeObject *tensor, *view;
  Py_ssize_t data, id, view_array, view_number, view_seen, view_root, thread;
  PyObject *stack, *recorders, *graphs, *checks, *next_id, *grow, *table, *rules_of, *program_of;
  long stride, few;
} its;

PyObject *s_known, *s_log, *s_dead, *s_take, *s_bury, *s_add, *s_id;

inline PyObject* slot(PyObject* x, Py_ssize_t offset) { return *(PyObject**)((char*)x + offset); }

// ---- arrays -------------------------------------------------------------------------------

// A small array of float32 or float64 whose elements lie in a row: the number of its type, or -1.
inline int kind_of(PyObject* x) {
  if (Py_TYPE(x) != &PyArray_Type) return -1;
  PyArrayObject* a = (PyArrayObject*)x;
  const int type = PyArray_DESCR(a)->type_num;
  if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !PyArray_ISCARRAY_RO(a)) return -1;
  const npy_intp n = PyArray_SIZE(a);
  return n > 0 && n <= MOST ? type : -1;
}

inline bool same_shape(PyArrayObject* a, PyArrayObject* b) {
  return PyArray_NDIM(a) == PyArray_NDIM(b) &&
         PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(b), PyArray_NDIM(a));
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

// ---- recording ----------------------------------------------------------------------------

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
  const bool is_plain = Py_TYPE(out) == its.tensor;  // a View has a property
  PyObject* serial = is_plain ? slot(out, its.id) : PyObject_GetAttr(out, s_id);
  if (is_plain) Py_XINCREF(serial);
  if (!serial) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_AttributeError, "_id");
    return nullptr;
  }
  const int is_numbered = PyObject_IsTrue(serial);
  if (is_numbered > 0) return serial;
  Py_DECREF(serial);
  if (is_numbered < 0 || !(serial = Py_TYPE(its.next_id)->tp_iternext(its.next_id))) return nullptr;
  bool ok = true;
  if (is_plain) {
    PyObject* old = slot(out, its.id);
    Py_INCREF(serial);
    *(PyObject**)((char*)out + its.id) = serial;
    Py_XDECREF(old);
  } else {
    ok = PyObject_SetAttr(out, s_id, serial) == 0;
  }
  if (ok && PyLong_AsLong(serial) % its.stride == 0) {
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

// ---- an op of small arrays ----------------------------------------------------------------

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

// The result as a Tensor; None if the op's Python must run, which has seen no effect then.
PyObject* call_op(PyObject* callable, PyObject* const* args, size_t flags, PyObject* names) {
  Op* self = (Op*)callable;
  if (PyVectorcall_NARGS(flags) != self->inputs || names) Py_RETURN_NONE;
  PyObject *values[2], *ids[2];
  PyArrayObject* first = nullptr;
  int type = -1;
  for (int i = 0; i < self->inputs; ++i) {
    if (!argument(args[i], &values[i], &ids[i])) Py_RETURN_NONE;
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

// ---- gradient rules as lists of loops -----------------------------------------------------

struct Step {
  Kernel kernel;  // without a loop: a where b holds 1 (bools), else c
  int a, b, c;    // values: g is 0, then the saved ones, constants, results of steps; -1 for none
  int bools;      // whether the result is of bools
};

struct Program {
  int rule, type, kinds;  // what it is for; kinds has two bits for each saved value, and one for `few`
  int steps, constants, result;
  double numbers[8];
  Step step[STEPS];
  Program* next;
};

struct Rules {
  PyObject_HEAD
  PyObject* rules;
  Program* programs;
};

void free_rules(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Rules* rules = (Rules*)self;
  Py_XDECREF(rules->rules);
  while (Program* p = rules->programs) {
    rules->programs = p->next;
    PyMem_Free(p);
  }
  type->tp_free(self);
  Py_DECREF(type);
}

PyType_Slot rules_slots[] = {{Py_tp_dealloc, (void*)free_rules}, {0, nullptr}};
PyType_Spec rules_spec = {"gpugrad.RulesInC", sizeof(Rules), 0, Py_TPFLAGS_DEFAULT, rules_slots};
PyTypeObject* rules_type;

// The Rules of a record, borrowed; null if its rules are Python's, or for an error.
Rules* rules_of(PyObject* op) {
  PyObject* found = PyDict_GetItemWithError(its.table, op);
  if (!found) {
    if (PyErr_Occurred()) return nullptr;
    PyObject* rules = PyObject_CallOneArg(its.rules_of, op);
    if (!rules) return nullptr;
    if (rules == Py_None) {
      Py_DECREF(rules);
      return nullptr;
    }
    Rules* made = PyObject_New(Rules, rules_type);
    if (!made) {
      Py_DECREF(rules);
      return nullptr;
    }
    made->rules = rules;
    made->programs = nullptr;
    const int failed = PyDict_SetItem(its.table, op, (PyObject*)made);
    Py_DECREF(made);
    if (failed) return nullptr;
    found = (PyObject*)made;
  }
  return (Rules*)found;
}

// The program of a rule for a dtype and for kinds of saved values; it has -1 steps if it has none.
Program* program_of(Rules* rules, PyObject* op, int rule, int type, int kinds) {
  for (Program* p = rules->programs; p; p = p->next)
    if (p->rule == rule && p->type == type && p->kinds == kinds) return p;
  PyObject* made = PyObject_CallFunction(its.program_of, "Oiii", op, rule, type == NPY_DOUBLE, kinds);
  if (!made) return nullptr;
  Program* p = (Program*)PyMem_Calloc(1, sizeof(Program));
  bool ok = p != nullptr;
  PyObject *constants, *steps;
  if (ok && made == Py_None) {
    p->steps = -1;
  } else if (ok && (ok = PyArg_ParseTuple(made, "O!O!i", &PyTuple_Type, &constants, &PyTuple_Type,
                                          &steps, &p->result))) {
    p->constants = (int)PyTuple_GET_SIZE(constants);
    p->steps = (int)PyTuple_GET_SIZE(steps);
    if (p->constants > 8 || p->steps > STEPS) p->steps = -1;
    for (int k = 0; p->steps >= 0 && k < p->constants; ++k)
      p->numbers[k] = PyFloat_AsDouble(PyTuple_GET_ITEM(constants, k));
    for (int k = 0; ok && k < p->steps; ++k) {
      unsigned long long loop, data;
      ok = PyArg_ParseTuple(PyTuple_GET_ITEM(steps, k), "KKiiip", &loop, &data, &p->step[k].a,
                            &p->step[k].b, &p->step[k].c, &p->step[k].bools);
      p->step[k].kernel = {(Loop)loop, (void*)data};
    }
    ok = ok && !PyErr_Occurred();
  }
  Py_DECREF(made);
  if (!ok) {
    PyMem_Free(p);
    return nullptr;
  }
  p->rule = rule;
  p->type = type;
  p->kinds = kinds;
  p->next = rules->programs;
  return rules->programs = p;
}

char* scratch;  // of one thread at a time, which has Python's lock
size_t scratch_size;

enum Kind { NONE, ARRAY, NUMBER, OTHER };

// np.where, whose bools are s.b.
template <class T>
void choose(char* const* at, const npy_intp* steps, const Step& s, int to, npy_intp n) {
  const npy_bool* which = (const npy_bool*)at[s.b];
  const T *a = (const T*)at[s.a], *c = (const T*)at[s.c];
  const npy_intp by_a = steps[s.a] != 0, by_c = steps[s.c] != 0;
  for (npy_intp i = 0; i < n; ++i) ((T*)at[to])[i] = which[i] ? a[i * by_a] : c[i * by_c];
}

// The gradient by a program: a new reference; null without memory.
PyObject* run(const Program& p, PyArrayObject* g, PyObject* saved, int type) {
  const npy_intp n = PyArray_SIZE(g), size = type == NPY_FLOAT ? 4 : 8;
  const int count = saved == Py_None ? 0 : (int)PyTuple_GET_SIZE(saved);
  char* at[VALUES];
  npy_intp steps[VALUES];
  double numbers[VALUES];
  at[0] = (char*)PyArray_DATA(g);
  steps[0] = size;
  int values = 1;
  for (int k = 0; k < count; ++k, ++values) {
    PyObject* value = PyTuple_GET_ITEM(saved, k);
    steps[values] = 0;
    at[values] = (char*)&numbers[values];
    if (Py_TYPE(value) == &PyArray_Type) {
      at[values] = (char*)PyArray_DATA((PyArrayObject*)value);
      steps[values] = size;
    } else if (value != Py_None) {
      weak_number(value, type, &numbers[values]);
    }
  }
  for (int k = 0; k < p.constants; ++k, ++values) {
    steps[values] = 0;
    at[values] = (char*)&numbers[values];
    if (type == NPY_FLOAT) *(float*)at[values] = (float)p.numbers[k];
    else *(double*)at[values] = p.numbers[k];
  }
  if (p.result < values) {  // g itself, or a saved array: nobody writes to gradients
    PyObject* same = p.result == 0 ? (PyObject*)g : PyTuple_GET_ITEM(saved, p.result - 1);
    Py_INCREF(same);
    return same;
  }
  const size_t row = ((size_t)(n * size) + 63) / 64 * 64, wanted = row * (size_t)p.steps + 64;
  if (wanted > scratch_size) {
    char* larger = (char*)PyMem_Realloc(scratch, wanted);
    if (!larger) return PyErr_NoMemory();
    scratch = larger;
    scratch_size = wanted;
  }
  PyObject* result = new_like(g, type);
  if (!result) return nullptr;
  char* rows = (char*)(((uintptr_t)scratch + 63) / 64 * 64);
  for (int k = 0; k < p.steps; ++k, ++values) {
    const Step& s = p.step[k];
    const bool last = values == p.result;
    at[values] = last ? (char*)PyArray_DATA((PyArrayObject*)result) : rows + row * (size_t)k;
    steps[values] = s.bools ? 1 : size;
    if (!s.kernel.loop) {
      if (type == NPY_FLOAT) choose<float>(at, steps, s, values, n);
      else choose<double>(at, steps, s, values, n);
      continue;
    }
    char* arrays[3] = {at[s.a], s.b < 0 ? at[values] : at[s.b], at[values]};
    npy_intp strides[3] = {steps[s.a], s.b < 0 ? steps[values] : steps[s.b], steps[values]};
    s.kernel.loop(arrays, &n, strides, s.kernel.data);
  }
  return result;
}

// ---- the backward loop --------------------------------------------------------------------

struct Pass {
  PyObject *grads, *needed, *not_popped, *stops, *owned, *xp, *one_entry, *failed, *add;
};

inline int contains(PyObject* set, PyObject* x) {
  return PyAnySet_CheckExact(set) ? PySet_Contains(set, x) : PySequence_Contains(set, x);
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
  int type = ok && old ? kind_of(old) : -1;
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

// setup(tensor, view, stack_type, stack, recorders, graphs, checks, next_id, grow, stride,
// few, rules_of, program_of)
PyObject* setup(PyObject*, PyObject* args) {
  PyObject *tensor, *view, *stack_type;
  if (!PyArg_ParseTuple(args, "OOOOOOOOOllOO", &tensor, &view, &stack_type, &its.stack,
                        &its.recorders, &its.graphs, &its.checks, &its.next_id, &its.grow,
                        &its.stride, &its.few, &its.rules_of, &its.program_of))
    return nullptr;
  Py_INCREF(args);  // all of them, for good
  its.tensor = (PyTypeObject*)tensor;
  its.view = (PyTypeObject*)view;
  its.data = place(tensor, "_data");
  its.id = place(tensor, "_id");
  its.view_array = place(view, "_array");
  its.view_number = place(view, "_number");
  its.view_seen = place(view, "_seen");
  its.view_root = place(view, "root");
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

extern "C" PyObject* gpugrad_tape() {
  import_array();
  op_type = (PyTypeObject*)PyType_FromSpec(&op_spec);
  rules_type = (PyTypeObject*)PyType_FromSpec(&rules_spec);
  s_known = PyUnicode_InternFromString("known");
  s_log = PyUnicode_InternFromString("log");
  s_dead = PyUnicode_InternFromString("dead");
  s_take = PyUnicode_InternFromString("take");
  s_bury = PyUnicode_InternFromString("bury");
  s_add = PyUnicode_InternFromString("add");
  s_id = PyUnicode_InternFromString("_id");
  if (PyErr_Occurred()) return nullptr;
  return PyModule_Create(&definition);
}
