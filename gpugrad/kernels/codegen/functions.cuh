// Functions of generated kernels that CUDA lacks: NumPy's and SciPy's rules for one element.
#ifndef GPUGRAD_FUNCTIONS
#define GPUGRAD_FUNCTIONS

template <class T> __device__ inline T not_a_number() { return infinity<T>() - infinity<T>(); }
template <class T> __device__ inline bool is_finite(T x) { return x - x == 0; }
template <class T> __device__ inline bool is_infinite(T x) { return x == x && x - x != 0; }
template <class T> __device__ inline bool sign_bit(T x) { return copysign(T(1), x) < 0; }

// ---- division: floats as in NumPy's npy_divmod, integers divided by 0 give 0

template <class T> __device__ inline T sign(T x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }

template <class T> struct division {  // integers
  static __device__ T floor(T a, T b) {
    if (b == 0) return 0;
    if (T(-1) < 0 && b == T(-1)) return T(0 - a);
    return T(a / b - (a % b != 0 && (a < 0) != (b < 0)));
  }
  static __device__ T rest(T a, T b) {
    if (b == 0 || (T(-1) < 0 && b == T(-1))) return 0;
    return T(a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0));
  }
};
template <class T> struct float_division {
  static __device__ T rest(T a, T b) {
    T r = fmod(a, b);
    if (b == 0) return r;
    if (r == 0) return copysign(T(0), b);
    return (b < 0) != (r < 0) ? r + b : r;
  }
  static __device__ T floor(T a, T b) {
    if (b == 0) return a / b;
    T r = fmod(a, b), q = (a - r) / b;
    if (r != 0 && (b < 0) != (r < 0)) q -= 1;
    if (q == 0) return copysign(T(0), a / b);
    T whole = ::floor(q);
    return q - whole > T(0.5) ? whole + 1 : whole;
  }
};
template <> struct division<float> : float_division<float> {};
template <> struct division<double> : float_division<double> {};
template <class T> __device__ inline T floor_divide(T a, T b) { return division<T>::floor(a, b); }
template <class T> __device__ inline T remainder(T a, T b) { return division<T>::rest(a, b); }

// ---- integers

template <class T> __device__ inline T left_shift(T x, T n) {
  return n >= 0 && (unsigned long long)n < 8 * sizeof(T) ? T((unsigned long long)x << n) : T(0);
}
template <class T> __device__ inline T right_shift(T x, T n) {
  return n >= 0 && (unsigned long long)n < 8 * sizeof(T) ? T(x >> n) : x < 0 ? T(-1) : T(0);
}
template <class T> __device__ inline T gcd(T a, T b) {
  a = a < 0 ? T(0 - a) : a, b = b < 0 ? T(0 - b) : b;
  while (b) { T r = T(a % b); a = b, b = r; }
  return a;
}
template <class T> __device__ inline T lcm(T a, T b) {
  T d = gcd<T>(a, b), m = d ? T(a / d * b) : T(0);
  return m < 0 ? T(0 - m) : m;
}
template <class T> __device__ inline T whole_power(T x, T n) {
  T r = 1;
  for (; n > 0; n = T(n >> 1), x = T(x * x)) r = n & 1 ? T(r * x) : r;
  return r;
}

// ---- floats

// x to a power that is the same for all elements, so that branches do not diverge.
template <class T> __device__ inline T uniform_power(T x, T y) {
  const T size = fabs(y);
  if (!(size <= 8 && size * 2 == floor(size * 2) && y != 0)) return pow(x, y);
  const int whole = int(size);  // as in powers.py
  if (size != whole && y != T(0.5)) x += 0;
  T power = whole ? x : sqrt(x);
  for (int bit = whole > 7 ? 4 : whole > 3 ? 2 : whole > 1 ? 1 : 0; bit; bit /= 2) {
    power *= power;
    if (whole & bit) power *= x;
  }
  if (whole && size != whole) power *= sqrt(x);
  return y < 0 ? 1 / power : power;
}
template <class T> __device__ inline T heaviside(T x, T y) {
  return x < 0 ? 0 : x > 0 ? 1 : x == 0 ? y : x;
}
template <class T, class I> __device__ inline T scaled(T x, I n) {
  return ldexp(x, n > 9999 ? 9999 : n < -9999 ? -9999 : int(n));
}
template <class T> __device__ inline T logaddexp(T x, T y) {
  if (x == y) return x + T(0.6931471805599453);
  T d = x - y;
  return d > 0 ? x + log1p(exp(-d)) : d <= 0 ? y + log1p(exp(d)) : d;
}
template <class T> __device__ inline T logaddexp2(T x, T y) {
  if (x == y) return x + 1;
  T d = x - y, e = T(1.4426950408889634);
  return d > 0 ? x + e * log1p(exp2(-d)) : d <= 0 ? y + e * log1p(exp2(d)) : d;
}

// ---- scipy.special

template <class T> __device__ inline T expit(T x) { return 1 / (1 + exp(-x)); }
template <class T> __device__ inline T logit(T x) { return log(x / (1 - x)); }
template <class T> __device__ inline T log_expit(T x) {
  return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x));
}
template <class T> __device__ inline T log_ndtr(T x) {
  T y = x * T(0.7071067811865476);
  return x < -1 ? log(erfcx(-y) / 2) - y * y : log1p(-erfc(y) / 2);
}
template <class T> __device__ inline T cosm1(T x) {
  T s = sin(x / 2);
  return -2 * s * s;
}
template <class T> __device__ inline T loggamma(T x) {
  return x < 0 ? not_a_number<T>() : lgamma(x);
}
template <class T> __device__ inline T rgamma(T x) {
  return x <= 0 && x == floor(x) ? 0 : 1 / tgamma(x);
}
template <class T> __device__ inline T gammasgn(T x) {
  if (x > 0 || x != x) return x > 0 ? 1 : x;
  if (x == 0) return copysign(T(1), x);
  T f = floor(x);
  return x == f ? not_a_number<T>() : fmod(f, T(2)) == 0 ? 1 : -1;
}
// Long functions are not inlined: a kernel would contain them once for each element of a pack.
template <class T> __device__ __noinline__ T bessel_y0(T x) {
  return x < 0 ? not_a_number<T>() : y0(x);
}
template <class T> __device__ __noinline__ T bessel_y1(T x) {
  return x < 0 ? not_a_number<T>() : y1(x);
}
template <class T> __device__ inline T xlogy(T x, T y) {
  return x == 0 && y == y ? 0 : x * log(y);
}
template <class T> __device__ inline T xlog1py(T x, T y) {
  return x == 0 && y == y ? 0 : x * log1p(y);
}
template <class T> __device__ inline T entr(T x) {
  return x > 0 ? -x * log(x) : x == 0 ? 0 : x < 0 ? -infinity<T>() : x;
}
template <class T> __device__ inline T rel_entr(T x, T y) {
  if (x != x || y != y) return not_a_number<T>();
  return x > 0 && y > 0 ? x * log(x / y) : x == 0 && y >= 0 ? 0 : infinity<T>();
}
template <class T> __device__ inline T kl_div(T x, T y) {
  if (x != x || y != y) return not_a_number<T>();
  return x > 0 && y > 0 ? x * log(x / y) - x + y : x == 0 && y >= 0 ? y : infinity<T>();
}
template <class T> __device__ inline T huber(T delta, T x) {
  T size = fabs(x);
  return delta < 0 ? infinity<T>() : size <= delta ? x * x / 2 : delta * (size - delta / 2);
}
template <class T> __device__ inline T pseudo_huber(T delta, T x) {
  if (delta < 0) return infinity<T>();
  if (delta == 0 || x == 0) return 0;
  T r = x / delta;
  return x * x / (1 + sqrt(1 + r * r));
}
template <class T> __device__ inline T boxcox(T x, T power) {
  return fabs(power) < T(1e-19) ? log(x) : expm1(power * log(x)) / power;
}
template <class T> __device__ inline T boxcox1p(T x, T power) {
  return fabs(power) < T(1e-19) ? log1p(x) : expm1(power * log1p(x)) / power;
}
template <class T> __device__ inline T inv_boxcox(T x, T power) {
  return power == 0 ? exp(x) : exp(log1p(power * x) / power);
}
template <class T> __device__ inline T inv_boxcox1p(T x, T power) {
  return power == 0 ? expm1(x) : fabs(power * x) < T(1e-19) ? x : expm1(log1p(power * x) / power);
}
#endif
