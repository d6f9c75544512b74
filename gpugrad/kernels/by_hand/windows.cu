// Windows on the last one to three axes: their maxima, the indices of these, and the gradient.
// Along one axis: window sums, and overlap-add.
//
// Each thread computes one element of a result, in the order of the window's elements or of the
// windows, so no two threads add to the same element.
//
// Minimal traffic: each array once. Overlapping windows read elements from the caches.

struct Axis {
  int length, places, size, step, dilation, before;
};
#define AXES_GIVEN                                                                              \
  int l0, int m0, int k0, int s0, int d0, int b0, int l1, int m1, int k1, int s1, int d1, int b1, \
      int l2, int m2, int k2, int s2, int d2, int b2
#define AXES Axis a0 = {l0, m0, k0, s0, d0, b0}, a1 = {l1, m1, k1, s1, d1, b1}, \
                  a2 = {l2, m2, k2, s2, d2, b2}

// The indices of element e of an array (outer, n0, n1, n2).
struct Place {
  long long o;
  int i0, i1, i2;
  __device__ Place(long long e, int n0, int n1, int n2) {
    long long row = divided(e, n2), image = divided(row, n1);
    i2 = int(e - row * n2), i1 = int(row - image * n1);
    o = divided(image, n0), i0 = int(image - o * n0);
  }
};

// Calls f(offset in x) for the elements of a window that are inside the array, in order, until it
// returns true.
template <class F>
__device__ void each_element(const Place& w, const Axis& a0, const Axis& a1, const Axis& a2, F f) {
  for (int k0 = 0; k0 < a0.size; ++k0) {
    int i0 = w.i0 * a0.step + k0 * a0.dilation - a0.before;
    if (i0 < 0 || i0 >= a0.length) continue;
    for (int k1 = 0; k1 < a1.size; ++k1) {
      int i1 = w.i1 * a1.step + k1 * a1.dilation - a1.before;
      if (i1 < 0 || i1 >= a1.length) continue;
      for (int k2 = 0; k2 < a2.size; ++k2) {
        int i2 = w.i2 * a2.step + k2 * a2.dilation - a2.before;
        if (i2 < 0 || i2 >= a2.length) continue;
        if (f(((long long)i0 * a1.length + i1) * a2.length + i2)) return;
      }
    }
  }
}

// The largest element of each window; NaN if the window has one.
template <class T> __global__ void window_max(const T* x, T* out, long long size, AXES_GIVEN) {
  typedef compute_t<T> A;
  AXES;
  long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= size) return;
  Place w(e, a0.places, a1.places, a2.places);
  const T* image = x + w.o * a0.length * a1.length * a2.length;
  A top = lowest<A>();
  each_element(w, a0, a1, a2, [&](long long at) {
    top = Max()(top, A(image[at]));
    return false;
  });
  out[e] = T(top);
}

// The index of the first element that is not below the maximum; the window's last if there is none,
// -1 for a window of padding only.
template <class T>
__global__ void window_argmax(
    const T* x, const T* out, long long* found, long long size, AXES_GIVEN) {
  typedef compute_t<T> A;
  AXES;
  long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= size) return;
  Place w(e, a0.places, a1.places, a2.places);
  const T* image = x + w.o * a0.length * a1.length * a2.length;
  A top = A(out[e]);
  if (top != top) top = infinity<A>();  // then a NaN is the first element that is not below it
  long long i0 = (long long)w.i0 * a0.step + (a0.size - 1) * a0.dilation - a0.before;
  long long i1 = (long long)w.i1 * a1.step + (a1.size - 1) * a1.dilation - a1.before;
  long long i2 = (long long)w.i2 * a2.step + (a2.size - 1) * a2.dilation - a2.before;
  long long where = (i0 * a1.length + i1) * a2.length + i2;
  bool empty = true;
  each_element(w, a0, a1, a2, [&](long long at) {
    empty = false;
    if (A(image[at]) < top) return false;
    where = at;
    return true;
  });
  found[e] = empty ? -1 : where;
}

__device__ inline int first_window(int i, const Axis& a) {  // the first that reaches i
  int past = i + a.before - (a.size - 1) * a.dilation;
  return past > 0 ? (past + a.step - 1) / a.step : 0;
}
__device__ inline int last_window(int i, const Axis& a) {
  int last = (i + a.before) / a.step;
  return last < a.places ? last : a.places - 1;
}

// For each element of an array (outer, lengths): the sum of g over the windows that selected it.
template <class T>
__global__ void window_scatter(
    const T* g, const long long* where, T* out, long long size, AXES_GIVEN) {
  typedef compute_t<T> A;
  AXES;
  long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= size) return;
  Place p(e, a0.length, a1.length, a2.length);
  long long here = ((long long)p.i0 * a1.length + p.i1) * a2.length + p.i2;
  int end0 = last_window(p.i0, a0), end1 = last_window(p.i1, a1), end2 = last_window(p.i2, a2);
  A sum = 0;
  for (int m0 = first_window(p.i0, a0); m0 <= end0; ++m0)
    for (int m1 = first_window(p.i1, a1); m1 <= end1; ++m1)
      for (int m2 = first_window(p.i2, a2); m2 <= end2; ++m2) {
        long long at = ((p.o * a0.places + m0) * a1.places + m1) * a2.places + m2;
        if (where[at] == here) sum += A(g[at]);
      }
  out[e] = T(sum);
}

// ---- along one axis

// (outer, n, inner) to (outer, places, inner).
template <class T>
__global__ void window_sum(
    const T* x, T* out, long long total, int n, int places, long long inner, int size, int step) {
  typedef compute_t<T> A;
  long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= total) return;
  long long line = divided(e, inner), o = divided(line, places);
  const T* from = x + (o * n + (line - o * places) * step) * inner + e - line * inner;
  A sum = A(from[0]);
  for (int k = 1; k < size; ++k) sum += A(from[k * inner]);
  out[e] = T(sum);
}

// (outer, places, inner, size) to (outer, n, inner). If `each` is 0, x is (outer, places, inner), and
// all elements of a window are equal.
template <class T>
__global__ void overlap_add(
    const T* x, T* out, long long total, int n, int places, long long inner, int size, int step,
    int dilation, int each) {
  typedef compute_t<T> A;
  long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= total) return;
  long long line = divided(e, inner), o = divided(line, n), c = e - line * inner;
  int i = int(line - o * n);
  Axis a = {n, places, size, step, dilation, 0};
  A sum = 0;
  for (int m = first_window(i, a), end = last_window(i, a); m <= end; ++m) {
    int k = i - m * step;
    if (k % dilation) continue;
    long long at = (o * places + m) * inner + c;
    sum += A(x[each ? at * size + k / dilation : at]);
  }
  out[e] = T(sum);
}
