// Derivatives of the regularised incomplete gamma and beta functions by their parameters: each is
// x^a e^-x, or x^a y^b, over gamma functions, times a series or a continued fraction, which is
// differentiated term by term on the side of the mean where it converges. Powers are relative to
// those at the mean, so that large ones do not cancel; gamma functions are Stirling's series from
// 10 on, and below by the recurrence. Floats are computed in double.
#include "pool.h"
#define LIBMVEC 0  // exp and log are those of own.h
#include "vector.h"

#include <atomic>

namespace {

const long PIECE = 4096;  // elements of a piece for a thread
const long MOST = 20000;  // terms: they suffice for parameters up to 1e6
constexpr int N = LANES<8>;
typedef V<double, N> D;
typedef V<bool, N> Mask;

struct Job {
  const void* arrays[3];
  long steps[3], second, n;
  void* out;
  std::atomic<bool> failed;
};

INLINE bool any(Mask m) { return fold<N, Max, long long>(Max(), -m.of) > 0; }

// log(1 + u) - u; `log` is log(1 + u).
INLINE D log_less(D u, D log) {
  const D r = u / (u + 2.0), y = r * r;
  const D sum = polynomial(y, 1.0 / 29, 1.0 / 27, 1.0 / 25, 1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17,
                           1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3);
  return where(fabs(u) < 0.4, r * (2.0 * y * sum - u), log - u);
}

// What Stirling's formula (s - 1/2) log(s) - s + log(2 pi) / 2 lacks of log(gamma(s)), s >= 10.
INLINE D stirling(D s) {
  const D r = D(1.0) / s;
  return r * polynomial(r * r, 1.0 / 156, -691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260,
                        -1.0 / 360, 1.0 / 12);
}
// digamma(s) - log(s), s >= 10.
INLINE D digamma_rest(D s) {
  const D r = D(1.0) / s, y = r * r;
  return -0.5 * r - y * polynomial(y, 1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252,
                                   -1.0 / 120, 1.0 / 12);
}

// (s + from) ... (s + to - 1), and the derivative of its logarithm.
struct Rising {
  D product = 1.0, slope = 0.0;
  INLINE Rising(D s, int from, int to) {
    for (int k = from; k < to; ++k) {
      const D next = s + double(k);
      slope = multiply_add(slope, next, product);
      product = product * next;
    }
    slope = slope / product;
  }
};

// gamma(s + 1) and gamma(s) by gamma(at), at >= 10: the factors, and the derivatives of their
// logarithms.
struct Shifted {
  D at, steps, factor, slope, factor_below, slope_below;
  INLINE Shifted(D s) {
    const Mask small = s < 10.0;
    const Rising above(where(small, s, D(1.0)), 1, 10);
    const D inverse = D(1.0) / s;
    at = where(small, s + 10.0, s), steps = where(small, D(10.0), D(0.0));
    factor = where(small, above.product, inverse);
    slope = where(small, above.slope, -inverse);
    factor_below = factor * s, slope_below = slope + inverse;
  }
};

// A continued fraction b0 + a1 / (b1 + a2 / (b2 + ...)) and the derivative of its logarithm, from
// the front (Lentz).
struct Fraction {
  D value, inverse, d, c_slope, d_slope, slope;
  INLINE Fraction(D b, D b_slope) : value(b), inverse(D(1.0) / b), d(0.0), c_slope(b_slope),
                                    d_slope(0.0), slope(b_slope * inverse) {}
  // Whether a lane has not converged to `eps`; `rest` is what `slope` is subtracted from.
  INLINE bool add(D a, D a_slope, D b, D b_slope, D rest, double eps) {
    const D ratio = a * inverse;
    c_slope = b_slope + (a_slope - ratio * c_slope) * inverse;
    const D c = b + ratio, change = b_slope + a_slope * d + a * d_slope;
    inverse = D(1.0) / c;
    d = D(1.0) / multiply_add(a, d, b);
    d_slope = -d * d * change;
    const D factor = c * d, up = c_slope * inverse, more = up - d * change;
    value = value * factor;
    slope += more;
    return any(fabs(factor - 1.0) > eps || fabs(more) > eps * (fabs(rest - slope) + fabs(up)));
  }
};

// dP(a, x)/da. P = x^a e^-x / gamma(a + 1) sum x^n / ((a + 1) ... (a + n)) below the mean, above it
// 1 - x^a e^-x / gamma(a) / (x + 1 - a + 1 (a - 1) / (x + 3 - a + 2 (a - 2) / (x + 5 - a + ...))).
INLINE D gamma_slope(D a, D x, double eps, bool& failed) {
  a = where(a < 1e-300, D(1e-300), a);
  const Mask below = x <= a + 1.0 || x <= 2.0;
  const Shifted s(a);
  const D u = (x - s.at) / s.at, log_ratio = log(x / s.at);
  D power = s.at * log_less(u, log_ratio) - stirling(s.at);
  if (any(s.steps > 0.0)) power = power - s.steps * log(x);
  const D scale = sqrt(s.at * (0.5 / 3.14159265358979323846)) * exp(power);
  const D rest = log_ratio - digamma_rest(s.at);
  D result = 0.0;
  long n = 0;
  if (any(below)) {
    const D z = where(below, x, D(0.0));
    D term = 1.0, sum = 1.0, slope = 0.0, sum_slope = 0.0;
    bool more = true;
    for (; more && n < MOST; ++n) {
      const D inverse = D(1.0) / (a + double(n + 1)), ratio = z * inverse;
      term = term * ratio;
      slope = slope * ratio - term * inverse;
      sum += term, sum_slope += slope;
      more = any(term > eps * sum || -slope > eps * (sum - sum_slope));
    }
    failed |= more;
    result = scale * s.factor * (sum * (rest + s.slope) + sum_slope);
  }
  if (any(!below)) {
    const D z = where(below, a + 40.0, x), whole = rest + s.slope_below;
    Fraction f(z + 1.0 - a, -1.0);
    bool more = true;
    for (n = 1; more && n < MOST; ++n)
      more = f.add(double(n) * (a - double(n)), double(n), z + double(2 * n + 1) - a, -1.0, whole, eps);
    failed |= more;
    result = where(below, result, -scale * s.factor_below * (whole - f.slope) / f.value);
  }
  return result;
}

// dI(a, b, x)/da, or that by b; y = 1 - x. I is x^a y^b / (a B(a, b)) over the fraction with
// m (b - m) (a + m - 1) (a + b + m - 1) x^2 / (a + 2m - 1)^2 and
// m + m (b - m) x / (a + 2m - 1) + (a + m) (a y - b x + 1 + m (2 - x)) / (a + 2m + 1),
// the first terms of both divided by a, on the side of x below the mean.
INLINE D beta_slope(D a, D b, D x, D y, bool second, double eps, bool& failed) {
  a = where(a < 1e-300, D(1e-300), a), b = where(b < 1e-300, D(1e-300), b);
  const Mask above = x * (a + b + 2.0) > a + 1.0;
  const D p = where(above, b, a), q = where(above, a, b);
  const D z = where(above, y, x), w = where(above, x, y), total = p + q;
  // the derivative is by p where dp is 1, else by q
  const D dp = where(above, D(second), D(!second)), dq = 1.0 - dp;
  const Mask by_p = dp > 0.0;

  const Shifted sp(p), sq(q);
  const D at = sp.at + sq.at, excess = z * sq.at - w * sp.at, steps = sp.steps + sq.steps;
  const D log_p = log(z * at / sp.at), log_q = log(w * at / sq.at);
  D power = sp.at * log_less(excess / sp.at, log_p) + sq.at * log_less(-excess / sq.at, log_q);
  power += stirling(at) - stirling(sp.at) - stirling(sq.at);
  D low = 1.0, low_slope = 0.0;
  if (any(steps > 0.0)) {
    power = power - sp.steps * log(z) - sq.steps * log(w);
    const Rising ten(where(steps > 0.0, total, D(1.0)), 0, 10);
    low = where(steps > 0.0, ten.product, low), low_slope = where(steps > 0.0, ten.slope, low_slope);
    const Rising twenty(where(steps > 10.0, total, D(1.0)), 10, 20);
    low = where(steps > 10.0, low * twenty.product, low);
    low_slope = where(steps > 10.0, low_slope + twenty.slope, low_slope);
  }
  const D root = sqrt(sp.at / at * sq.at * (0.5 / 3.14159265358979323846));
  const D scale = root * (sp.factor / low * sq.factor) * exp(power);  // over q
  const D whole = digamma_rest(at) - low_slope +
                  where(by_p, log_p - digamma_rest(sp.at) + sp.slope,
                        log_q - digamma_rest(sq.at) + sq.slope_below);

  const D first = p * w - q * z + 1.0, first_slope = dp * w - dq * z;
  D inverse = D(1.0) / (p + 1.0);  // 1 / (p + 2 m + 1)
  D b_m = first * inverse, b_slope = (first_slope - dp * b_m) * inverse;
  Fraction f(b_m, b_slope);
  bool more = true;
  long m = 1;
  for (; more && m < MOST; ++m) {
    const double k = m;
    const D before = inverse, kz = k * z * before, left = q - k;
    const D from = total + (k - 1.0), over = m == 1 ? D(1.0) : p + (k - 1.0);
    inverse = D(1.0) / (p + (2.0 * k + 1.0));
    const D outer = over * from, scaled = kz * z * before;
    const D a_m = scaled * left * outer;
    const D outer_slope = over + (m == 1 ? D(0.0) : dp * from);
    const D a_slope = scaled * (dq * outer + left * (outer_slope - 2.0 * dp * outer * before));
    const D step = multiply_add(D(k), 2.0 - z, first), ratio = (p + k) * inverse;
    b_m = k + kz * left + ratio * step;
    b_slope = kz * (dq - dp * left * before) + ratio * first_slope +
              dp * step * inverse * (1.0 - ratio);
    more = f.add(a_m, a_slope, b_m, b_slope, whole, eps);
  }
  failed |= more;
  const D slope = scale * (q * (whole - f.slope)) / f.value;
  return where(above, -slope, slope);
}

template <class T> INLINE D vector_of(const Job& job, int k, long i, long n) {
  const T* p = (const T*)job.arrays[k] + i * job.steps[k];
  return each_lane<double, N>([&](int j) {
    return (double)p[(j < n ? j : 0) * job.steps[k]];
  });
}

template <class T, bool BETA> void piece(void* state, long k) {
  Job& job = *(Job*)state;
  const double eps = sizeof(T) == 4 ? 1e-9 : 2e-16;
  bool failed = false;
  for (long i = k * PIECE; !failed && i < job.n && i < (k + 1) * PIECE; i += N) {
    const long n = job.n - i < N ? job.n - i : N;
    const D a = vector_of<T>(job, 0, i, n), x = vector_of<T>(job, BETA ? 2 : 1, i, n);
    const D b = BETA ? vector_of<T>(job, 1, i, n) : D(1.0), y = BETA ? 1.0 - x : D(1.0);
    // the limits are 0, with the sign of the values beside them
    const Mask most = BETA ? a + b < 0x1p50 || is_infinite(a + b) : x == x;
    const Mask valid = a >= 0.0 && b >= 0.0 && a + b > 0.0 && x >= 0.0 &&
                       y >= 0.0 && most;
    const Mask inside = valid && x > 0.0 && y > 0.0 && is_finite(a + b + x);
    const D edge = where(valid, D(job.second ? 0.0 : -0.0), D(not_a_number<double>()));
    const D safe = BETA ? 0.5 : 1.0, a1 = where(inside, a, D(1.0)), x1 = where(inside, x, safe);
    D out;
    if constexpr (BETA)
      out = beta_slope(a1, where(inside, b, D(1.0)), x1, 1.0 - x1, job.second, eps, failed);
    else
      out = gamma_slope(a1, x1, eps, failed);
    failed |= any(out != out);
    const Mask flat = BETA ? (job.second ? a : b) == 0.0 : x != x;  // I is 1 or 0 there
    out = where(inside && !flat, out, edge);
    for (long j = 0; j < n; ++j) ((T*)job.out)[i + j] = out[j];
  }
  if (failed) job.failed = true;
}

}  // namespace

// Fills `out`, n elements; a step is 1 for an array, or 0 for one element. False unless all series
// have converged.
extern "C" long gpugrad_slopes(long wide, long beta, long second, const void* a, const void* b,
                               const void* x, void* out, long a_step, long b_step, long x_step,
                               long n) {
  Job job{{a, b, x}, {a_step, b_step, x_step}, second, n, out, {false}};
  const gpugrad_job jobs[] = {piece<float, false>, piece<double, false>, piece<float, true>,
                              piece<double, true>};
  if (!beta) job.arrays[1] = x, job.steps[1] = x_step;
  gpugrad_parallel(jobs[2 * beta + wide], &job, (n + PIECE - 1) / PIECE);
  return !job.failed;
}
