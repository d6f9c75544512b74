// Gradient rules as lists of ufuncs' loops.
#pragma once
#include "tape_state.h"

namespace {

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

}  // namespace
