// The loss of connectionist temporal classification and its gradient, one sequence a piece.
// `gpugrad.ops.nn.losses_ctc` describes the states; here two impossible ones precede them, and the
// vectors of a step end in impossible ones.
#define LIBMVEC 0
#include "vector.h"

#include "pool.h"

#include <cmath>
#include <vector>

namespace {

template <class T> constexpr int N = LANES<(int)sizeof(T)>;
template <class T> using Vec = V<T, N<T>>;

struct Job {
  const void* log_probs;  // (steps, n, classes)
  const long *targets, *input_lengths, *target_lengths;
  void *losses, *grads;  // (n,), (steps, n, classes)
  long steps, n, classes, width, blank;
};

template <class T> INLINE Vec<T> log_of_three(Vec<T> a, Vec<T> b, Vec<T> c) {
  Vec<T> m = where(a > b, a, b);
  m = where(m > c, m, c);
  const Vec<T> some = exp(a - m) + exp(b - m) + exp(c - m);
  return where(m > -infinity<T>(), m + log(some), m);
}

// The states of one sequence.
template <class T> struct States {
  static const long PAD = 2;
  long count, row;  // of states, and of a row of sums
  std::vector<long> classes;
  std::vector<T> skips, scores;  // 0 where a state is reached from two before, else -inf

  States(const Job& job, long example)
      : count(2 * job.target_lengths[example] + 1),
        row((count + N<T> - 1) / N<T> * N<T> + 2 * PAD + N<T>),
        classes(row, job.blank), skips(row, -infinity<T>()), scores(row, -infinity<T>()) {
    const long* target = job.targets + example * job.width;
    for (long k = 1; k < count; k += 2) classes[k] = target[k / 2];
    for (long k = 3; k < count; k += 2)
      if (classes[k] != classes[k - 2]) skips[k] = 0;
  }
  void read(const T* log_probs) {
    for (long k = 0; k < count; ++k) scores[k] = log_probs[classes[k]];
  }
};

// Sums over the beginnings of paths to each state: the row of a step from that of the one before.
template <class T> void forward(States<T>& s, const T* before, T* after) {
  for (long k = 0; k < s.count; k += N<T>) {
    const Vec<T> two = load<N<T>, N<T>>(before + k - 2) + load<N<T>, N<T>>(&s.skips[k]);
    const Vec<T> sum = log_of_three<T>(
        load<N<T>, N<T>>(before + k), load<N<T>, N<T>>(before + k - 1), two);
    store<N<T>>(after + k, sum + load<N<T>, N<T>>(&s.scores[k]));
  }
}

// Sums over the remainders of paths: `ahead` has those of the next step plus its scores.
template <class T> void backward(States<T>& s, const T* ahead, T* beta) {
  for (long k = 0; k < s.count; k += N<T>) {
    const Vec<T> two = load<N<T>, N<T>>(ahead + k + 2) + load<N<T>, N<T>>(&s.skips[k + 2]);
    const Vec<T> sum =
        log_of_three<T>(load<N<T>, N<T>>(ahead + k), load<N<T>, N<T>>(ahead + k + 1), two);
    store<N<T>>(beta + k, sum);
  }
  for (long k = s.count; k < s.row - 2 * States<T>::PAD; ++k) beta[k] = -infinity<T>();
}

template <class T> void example(void* state, long e) {
  const Job& job = *(Job*)state;
  const T infinite = infinity<T>();
  const long steps = job.input_lengths[e], step = job.n * job.classes;
  const T* log_probs = (const T*)job.log_probs + e * job.classes;
  T* grads = job.grads ? (T*)job.grads + e * job.classes : nullptr;
  States<T> s(job, e);
  const long count = s.count, rows = grads ? steps + 1 : 2;
  std::vector<T> alphas(rows * s.row, -infinite);
  const auto alpha = [&](long t) { return &alphas[t % rows * s.row + States<T>::PAD]; };
  alpha(0)[0] = 0;
  for (long t = 0; t < steps; ++t) {
    s.read(log_probs + t * step);
    forward(s, alpha(t), alpha(t + 1));
  }
  const T *last = alpha(steps), a = last[count - 1], b = count > 1 ? last[count - 2] : -infinite;
  const T most = a > b ? a : b, total = most > -infinite
      ? most + std::log(std::exp(a - most) + std::exp(b - most)) : most;
  if (!grads) {
    ((T*)job.losses)[e] = T(0) - total;
    return;
  }
  for (long t = 0; t < job.steps; ++t)
    for (long c = 0; c < job.classes; ++c) grads[t * step + c] = 0;
  if (!(total > -infinite)) return;
  std::vector<T> beta(s.row, -infinite), ahead(s.row, -infinite);
  beta[count - 1] = 0;
  if (count > 1) beta[count - 2] = 0;
  for (long t = steps - 1; t >= 0; --t) {
    const T* own = alpha(t + 1);
    for (long k = 0; k < count; k += N<T>) {
      const Vec<T> share =
          exp(load<N<T>, N<T>>(own + k) + load<N<T>, N<T>>(&beta[k]) - total);
      for (long i = 0; i < N<T> && k + i < count; ++i)
        grads[t * step + s.classes[k + i]] -= share[i];
    }
    if (!t) break;
    s.read(log_probs + t * step);
    for (long k = 0; k < count; ++k) ahead[k] = beta[k] + s.scores[k];
    backward(s, ahead.data(), beta.data());
  }
}

}  // namespace

// Losses, or gradients if `grads` is not null. Labels and lengths must be in range.
extern "C" void gpugrad_ctc(
    long wide, const void* log_probs, const long* targets, const long* input_lengths,
    const long* target_lengths, void* losses, void* grads, long steps, long n, long classes,
    long width, long blank) {
  Job job = {log_probs, targets, input_lengths, target_lengths, losses, grads,
             steps, n, classes, width, blank};
  gpugrad_parallel(wide ? example<double> : example<float>, &job, n);
}
