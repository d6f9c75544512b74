// Steps of optimizers over all arrays of a dtype in one pass, rounded as NumPy's steps in
// gpugrad/optim: no product and sum is contracted.
#include "array.h"
#include "pool.h"

#include <algorithm>
#include <vector>

namespace {

const long PIECE = 1 << 14;  // elements: 10 us

// One element of a step; x holds the parameter p, the gradient g and the averages. `s` are the
// numbers that gpugrad.optim computes for each Variable.

struct Sgd {
  static const int ARRAYS = 2, NUMBERS = 1;
  template <class T> static void step(T* x, const T* s) { x[0] += x[1] * s[0]; }
};

struct Momentum {
  static const int ARRAYS = 3, NUMBERS = 2;
  template <class T> static void step(T* x, const T* s) {
    x[2] += x[1] * s[0];
    x[0] += x[2] * s[1];
  }
};

struct Nesterov {
  static const int ARRAYS = 3, NUMBERS = 3;
  template <class T> static void step(T* x, const T* s) {
    Momentum::step(x, s);
    x[0] += x[1] * s[2];
  }
};

inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }

struct Adam {
  static const int ARRAYS = 4, NUMBERS = 5;
  template <class T> static void step(T* x, const T* s) {
    T t = x[1] * s[0];
    x[2] += t;
    t *= t;
    x[3] += t * s[1];
    t = x[2] / (root(x[3]) + s[2]);
    x[0] = x[0] * s[4] + t * s[3];
  }
};

struct Work {
  void* const* arrays;  // NumPy's, those of one Variable after the other
  const double* numbers;
  std::vector<long> ends;  // the number of pieces up to the end of each Variable
};

template <class T, class Step> void piece(void* state, long k) {
  const Work& work = *(Work*)state;
  long i = std::upper_bound(work.ends.begin(), work.ends.end(), k) - work.ends.begin();
  long low = (k - (i ? work.ends[i - 1] : 0)) * PIECE;
  const Array* of[4];
  for (int a = 0; a < Step::ARRAYS; ++a) of[a] = &array_of(work.arrays[i * Step::ARRAYS + a]);
  long high = std::min(low + PIECE, long(of[0]->shape[0]));
  T s[Step::NUMBERS];
  for (int j = 0; j < Step::NUMBERS; ++j) s[j] = T(work.numbers[i * Step::NUMBERS + j]);
  T *p = (T*)of[0]->data, *g = (T*)of[1]->data;
  T *m = Step::ARRAYS > 2 ? (T*)of[2]->data : p, *v = Step::ARRAYS > 3 ? (T*)of[3]->data : m;
#pragma GCC ivdep
  for (long j = low; j < high; ++j) {
    T x[4] = {p[j], g[j], m[j], v[j]};
    Step::step(x, s);
    p[j] = x[0];
    if (Step::ARRAYS > 2) m[j] = x[2];
    if (Step::ARRAYS > 3) v[j] = x[3];
  }
}

template <class Step>
void run(void* const* arrays, const double* numbers, long count, long wide) {
  Work work = {arrays, numbers, {}};
  long pieces = 0;
  for (long i = 0; i < count; ++i) {
    pieces += (array_of(arrays[i * Step::ARRAYS]).shape[0] + PIECE - 1) / PIECE;
    work.ends.push_back(pieces);
  }
  gpugrad_parallel(wide ? piece<double, Step> : piece<float, Step>, &work, pieces);
}

}  // namespace

// Steps `count` Variables, whose flat arrays (parameter, gradient, averages) and numbers follow
// each other. Kinds: SGD without, with, and with Nesterov momentum; Adam.
extern "C" void gpugrad_step(
    long kind, long wide, void* const* arrays, const double* numbers, long count) {
  decltype(&run<Sgd>) runs[] = {run<Sgd>, run<Momentum>, run<Nesterov>, run<Adam>};
  runs[kind](arrays, numbers, count, wide);
}
