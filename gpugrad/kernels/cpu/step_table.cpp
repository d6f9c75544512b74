// Several steps of a program in one call from Python: kernels, products, copies...
//
// A step finds its arrays in `slots`: addresses, shapes and strides. Some slots stay the same, those
// of buffers and constants; the others are filled from a tuple of arrays at each call.
#include "array.h"
#include "lanes.h"
#include "nan.h"
#include "pool.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

enum Kind { KERNEL, PRODUCT, COPY, CHECK, CALL, FUNCTION, LEAVE };

const long MOST = 256;  // pointers of a kernel, or arrays of a function
const long PIECE = 1 << 15;  // elements of a piece of a copy

typedef void (*Call)(const long* numbers, const void* a, const void* b, void* out);
typedef long (*Function)(const long* numbers, const Array* const* arrays);
typedef long (*Multiply)(const Array& a, const Array& b, const Array& c, long wide);
Multiply multiply;
long first_item;  // bytes of a tuple in front of its items

// ---- copies

struct Copy {
  const Array *to, *from;
  long size;  // of an element
  int inner;  // the axis of the innermost loop
  int across;  // the axis along which `from` is contiguous, if `to` is along the inner one; or -1
};

template <class T> void copy_line(char* to, char* from, long n, long to_step, long from_step) {
  for (long k = 0; k < n; ++k) *(T*)(to + k * to_step) = *(const T*)(from + k * from_step);
}

void copy_line(char* to, char* from, long n, long to_step, long from_step, long size) {
  if (to_step == size && from_step == size) memcpy(to, from, n * size);
  else if (size == 8) copy_line<uint64_t>(to, from, n, to_step, from_step);
  else if (size == 4) copy_line<uint32_t>(to, from, n, to_step, from_step);
  else if (size == 2) copy_line<uint16_t>(to, from, n, to_step, from_step);
  else if (size == 1) copy_line<uint8_t>(to, from, n, to_step, from_step);
  else for (long k = 0; k < n; ++k) memcpy(to + k * to_step, from + k * from_step, size);
}

// Transposes `rows` lines along the inner axis, in tiles of LANES x LANES elements of four bytes.
void copy_plane(const Copy& c, char* to, char* from, long rows) {
  const long columns = c.to->shape[c.inner], apart = c.from->strides[c.inner];
  const long down = c.to->strides[c.across];
  for (long r = 0; r < rows; r += LANES)
    for (long k = 0; k < columns; k += LANES) {
      const long height = rows - r < LANES ? rows - r : LANES;
      const long width = columns - k < LANES ? columns - k : LANES;
      char *out = to + r * down + k * 4, *in = from + k * apart + r * 4;
      if (height < LANES || width < LANES) {
        for (long i = 0; i < height; ++i)
          copy_line<uint32_t>(out + i * down, in + i * 4, width, 4, apart);
        continue;
      }
      Vector tile[LANES];
      for (int i = 0; i < LANES; ++i) tile[i] = *(const Vector*)(in + i * apart);
      transpose(tile);
      for (int i = 0; i < LANES; ++i) *(Vector*)(out + i * down) = tile[i];
    }
}

// Copies the elements of the axes from d on, without those of the innermost loops; `rows` of them
// are along the axis across.
void copy_axes(const Copy& c, int d, char* to, char* from, long rows) {
  const int i = c.inner;
  const intptr_t *shape = c.to->shape, *down = c.to->strides, *step = c.from->strides;
  if (c.across < 0 && d + 1 == i) {  // a loop over lines
    for (long k = 0; k < shape[d]; ++k)
      copy_line(to + k * down[d], from + k * step[d], shape[i], down[i], step[i], c.size);
    return;
  }
  while (d == i || d == c.across) ++d;
  if (d < c.to->ndim) {
    for (long k = 0; k < shape[d]; ++k)
      copy_axes(c, d + 1, to + k * down[d], from + k * step[d], rows);
  } else if (c.across >= 0) {
    copy_plane(c, to, from, rows);
  } else {
    copy_line(to, from, shape[i], down[i], step[i], c.size);
  }
}

long rows_of(const Copy& c) { return c.across < 0 ? 1 : c.to->shape[c.across]; }

void copy_piece(void* state, long k) {
  const Copy& c = *(Copy*)state;
  const long rows = rows_of(c), first = c.across == 0 ? k * LANES : k;
  const long left = c.across == 0 && rows - first < LANES ? rows - first : LANES;
  copy_axes(c, 1, c.to->data + first * c.to->strides[0], c.from->data + first * c.from->strides[0],
            c.across == 0 ? left : rows);
}

void copy(const Array& to, const Array& from, long size) {
  long n = 1;
  for (int d = 0; d < to.ndim; ++d) n *= to.shape[d];
  if (!n) return;
  if (!to.ndim) {
    memcpy(to.data, from.data, size);
    return;
  }
  Copy c = {&to, &from, size, to.ndim - 1, -1};
  if (size == 4 && to.strides[c.inner] == size && from.strides[c.inner] != size)
    for (int d = 0; d < c.inner; ++d)
      if (from.strides[d] == size && to.shape[d] >= LANES / 2) c.across = d;
  const long pieces = c.across == 0 ? (to.shape[0] + LANES - 1) / LANES : to.shape[0];
  if (to.ndim > 1 && n >= PIECE) gpugrad_parallel(copy_piece, &c, pieces);
  else copy_axes(c, 0, to.data, from.data, rows_of(c));
}

// As NumPy says: without elements it is, whatever the strides.
bool is_contiguous(const Array& a, long size) {
  bool is = true;
  for (int d = a.ndim - 1; d >= 0; size *= a.shape[d--]) {
    if (a.shape[d] == 0) return true;
    is &= a.shape[d] == 1 || a.strides[d] == size;
  }
  return is;
}

// ---- kernels

// As gpugrad_run, which it calls if there are several ranges: in a loop of small arrays the calls take
// as long as a kernel.
inline void run(gpugrad_kernel kernel, gpugrad_end end, long n, long grain, char** pointers,
                char* partials, long size) {
  if (n > grain) return gpugrad_run(kernel, end, n, grain, pointers, partials, size);
  kernel(pointers, 0, n, partials);
  if (end) end(pointers, partials, 1);
}

}  // namespace

extern "C" {

void gpugrad_set_calls(Multiply function, long first) { multiply = function, first_item = first; }

// Fills slots from the arrays of a tuple of n. If an array has an itemsize in `sizes`, it must be
// contiguous. Returns -1, or the number of the first array that is not.
long gpugrad_fill(Array* slots, void* tuple, long n, const long* sizes) {
  void** items = (void**)((char*)tuple + first_item);
  for (long k = 0; k < n; ++k) {
    slots[k] = array_of(items[k]);
    if (sizes && sizes[k] && !is_contiguous(slots[k], sizes[k])) return k;
  }
  return -1;
}

// Runs the steps of a table from `at` to `end`. Returns -1, or the place of a step that is left to
// Python, or of a check that fails. A step is its kind, the number of its other words, and these words:
//   KERNEL   addresses of the kernel and its end, n, grain, bytes of its partial sums, and for each
//            pointer its slot and an offset in bytes
//   PRODUCT  whether it is one of doubles, and the slots of both factors and of the result
//   COPY     bytes of an element, and the slots of the target and of the source
//   CALL     the address of a function, the numbers that it reads, and for each of its three pointers
//            its slot and an offset in bytes
//   CHECK    whether they are doubles, and the slots of arrays that must have no NaN
//   FUNCTION the address of a function of arrays, how many numbers it reads, these, and the slots of
//            its arrays. Python computes the step if it returns another number than 0.
//   LEAVE    a 0, and the slots of arrays: a step that Python computes
long gpugrad_calls(const long* table, long at, long end, Array* slots, char* partials) {
  char* pointers[MOST];
  while (at < end) {
    const long *word = table + at + 2, count = word[-1];
    if (table[at] == KERNEL) {
      char** p = pointers;
      for (const long *at = word + 5, *last = word + count; at < last; at += 2)
        *p++ = slots[at[0]].data + at[1];
      run((gpugrad_kernel)word[0], (gpugrad_end)word[1], word[2], word[3], pointers, partials,
          word[4]);
    } else if (table[at] == COPY) {
      copy(slots[word[1]], slots[word[2]], word[0]);
    } else if (table[at] == CHECK) {
      for (long k = 1; k < count; ++k)
        if (has_nan(slots[word[k]], word[0])) return at;
    } else if (table[at] == CALL) {
      char** p = pointers;
      for (long k = count - 6; k < count; k += 2) *p++ = slots[word[k]].data + word[k + 1];
      ((Call)word[0])(word + 1, pointers[0], pointers[1], pointers[2]);
    } else if (table[at] == FUNCTION) {
      const Array* arrays[MOST];
      const long* first = word + 2 + word[1];
      for (long k = 0; first + k < word + count; ++k) arrays[k] = &slots[first[k]];
      if (((Function)word[0])(word + 2, arrays)) return at;
    } else if (table[at] == LEAVE) {
      return at;
    } else if (multiply(slots[word[1]], slots[word[2]], slots[word[3]], word[0]) < 1) {
      return at;
    }
    at += count + 2;
  }
  return -1;
}

// Runs all steps of a table until n times are done. After each time, the address of a slot of `moves`
// moves by some bytes, then back if it alternates between two places: each entry is the slot, the
// bytes and whether it alternates. `state` is how many times are done, and the place in the table to
// go on from. Returns as gpugrad_calls does; `state` is behind the step that is left to Python.
long gpugrad_loop(const long* table, long end, Array* slots, char* partials, long n, long* moves,
                  long count, long* state) {
  for (; state[0] < n; ++state[0], state[1] = 0) {
    long at = gpugrad_calls(table, state[1], end, slots, partials);
    if (at >= 0) {
      state[1] = at + 2 + table[at + 1];
      return at;
    }
    for (long* move = moves; move < moves + 3 * count; move += 3) {
      slots[move[0]].data += move[1];
      move[1] = (move[1] ^ -move[2]) + move[2];  // its negative if it alternates, without a branch
    }
  }
  return -1;
}

// The words of a loop's memory, which `gpugrad.function.cpu.loop_memory` writes.
struct Loop {
  long busy, state[2];  // whether a run uses it, and what gpugrad_loop needs
  const long *table, end;
  Array* slots;
  char* partials;
  const long n, *moves, count;
  long* moving;  // a copy of the moves, which change meanwhile
  const long *places, bound;  // slots that lie in the arrays: slot, number of the array, offset
  char** turns;  // the two places of each value of the carry
  const long *sizes, carried, first;  // its bytes, how many there are, and the first result
};

}  // extern "C"

namespace {

const long LONGEST = 1 << 16;  // iterations of a loop of unknown length that C runs

long aligned(long bytes) { return (bytes + 63) / 64 * 64; }

// Memory that grows, and is freed at the end of a block.
struct Memory {
  char* data;
  long room;

  bool grow(long bytes) {
    if (bytes <= room) return true;
    room = bytes * 2;
    void* more = realloc(data, room);
    if (more) data = (char*)more;
    return more;
  }

  ~Memory() { free(data); }
};

}  // namespace

// Runs a loop until min(n, until) times are done. `array(k)` is the address of an array: of the first
// carry, the stacks that it reads, what stays the same, the last carry, the stacks that it writes.
// Returns as gpugrad_loop does.
template <class F> long run_loop(Loop& loop, F array, long until) {
  if (!loop.state[0] && !loop.state[1]) {
    memcpy(loop.moving, loop.moves, 3 * loop.count * sizeof(long));
    for (const long* at = loop.places; at < loop.places + 3 * loop.bound; at += 3)
      loop.slots[at[0]].data = (at[1] < 0 ? loop.turns[-1 - at[1]] : array(at[1])) + at[2];
    for (long k = 0; k < loop.carried; ++k) memcpy(loop.turns[k], array(k), loop.sizes[k]);
  }
  const long at = gpugrad_loop(loop.table, loop.end, loop.slots, loop.partials,
                               until < loop.n ? until : loop.n, loop.moving, loop.count, loop.state);
  for (long k = 0; at < 0 && loop.state[0] == loop.n && k < loop.carried; ++k)
    memcpy(array(loop.first + k), loop.turns[k] + loop.n % 2 * loop.sizes[k], loop.sizes[k]);
  return at;
}

extern "C" {

// The same on the arrays of a tuple. `state` is 0 before the first call of a run.
long gpugrad_bound_loop(Loop* loop, void* tuple, long count, long until) {
  void** items = (void**)((char*)tuple + first_item);
  return run_loop(*loop, [&](long k) { return array_of(items[k]).data; }, until);
}

// A loop as a step of another one: a function of arrays; its only number is the address of the words.
// A step that fails leaves it to Python, and so does a run of another thread at the same time.
long gpugrad_nested(const long* numbers, const Array* const* arrays) {
  Loop& loop = *(Loop*)numbers[0];
  if (__atomic_exchange_n(&loop.busy, 1, __ATOMIC_ACQUIRE)) return 1;
  loop.state[0] = loop.state[1] = 0;
  const long at = run_loop(loop, [&](long k) { return arrays[k]->data; }, loop.n);
  __atomic_store_n(&loop.busy, 0, __ATOMIC_RELEASE);
  return at != -1;
}

// One of two programs, each a loop that runs once, as a boolean says: the first of the arrays. The
// others are what both read, and the results. The numbers are the addresses of both.
long gpugrad_cond(const long* numbers, const Array* const* arrays) {
  return gpugrad_nested(numbers + !*(const bool*)arrays[0]->data, arrays + 1);
}

// A loop that goes on while a test holds. numbers: the addresses of the test and of the body, how many
// arrays are the carry, and how many stay the same, and the most iterations, or -1. The arrays are
// these, then the results, which hold the carry meanwhile. Python can be interrupted: it computes long
// loops.
long gpugrad_while(const long* numbers, const Array* const* arrays) {
  const long n = numbers[2], inputs = n + numbers[3], most = numbers[4];
  const Loop& body = *(const Loop*)numbers[1];
  const Array* now[MOST];
  bool holds;
  const Array flag = {(char*)&holds};
  for (long k = 0; k < n; ++k) {
    now[k] = arrays[inputs + k];
    memcpy(now[k]->data, arrays[k]->data, body.sizes[k]);
  }
  for (long k = n; k < inputs; ++k) now[k] = arrays[k];
  for (long i = 0; i != most; ++i) {
    now[inputs] = &flag;
    if (i == LONGEST || gpugrad_nested(numbers, now)) return 1;
    if (!holds) break;
    for (long k = 0; k < n; ++k) now[inputs + k] = now[k];
    if (gpugrad_nested(numbers + 1, now)) return 1;
  }
  return 0;
}

// The gradient of such a loop. The carries of all iterations are kept in memory that grows; then a
// body goes back over them. numbers: those of the loop, the address of that body, and how many values
// it carries: gradients and sums. The arrays are those that the loop reads, and these values before
// and after. The body reads the values, the carry before an iteration, and what stays the same.
long gpugrad_while_gradient(const long* numbers, const Array* const* arrays) {
  const long n = numbers[2], inputs = n + numbers[3], most = numbers[4], values = numbers[6];
  const Loop &body = *(const Loop*)numbers[1], &back = *(const Loop*)numbers[5];
  Memory kept = {nullptr, 0};
  Array before[MOST], after[MOST];
  const Array* now[MOST];
  bool holds;
  const Array flag = {(char*)&holds};
  long bytes = 0, count = 0;
  for (long k = 0; k < n; ++k) bytes += aligned(body.sizes[k]);
  const auto point = [&](Array* to, long iteration) {
    char* at = kept.data + iteration * bytes;
    for (long k = 0; k < n; at += aligned(body.sizes[k++])) to[k].data = at;
  };
  for (;; ++count) {
    if (count == LONGEST || !kept.grow((count + 2) * bytes)) return 1;
    point(before, count), point(after, count + 1);
    for (long k = 0; !count && k < n; ++k) memcpy(before[k].data, arrays[k]->data, body.sizes[k]);
    for (long k = 0; k < inputs; ++k) now[k] = k < n ? &before[k] : arrays[k];
    if (count == most) break;
    now[inputs] = &flag;
    if (gpugrad_nested(numbers, now)) return 1;
    if (!holds) break;
    for (long k = 0; k < n; ++k) now[inputs + k] = &after[k];
    if (gpugrad_nested(numbers + 1, now)) return 1;
  }
  const Array* const* results = arrays + inputs + values;
  for (long k = 0; k < values; ++k) {
    now[k] = now[values + inputs + k] = results[k];
    memcpy(results[k]->data, arrays[inputs + k]->data, back.sizes[k]);
  }
  for (long k = 0; k < inputs; ++k) now[values + k] = k < n ? &before[k] : arrays[k];
  while (count--) {
    point(before, count);
    if (gpugrad_nested(numbers + 5, now)) return 1;
  }
  return 0;
}

// The same as gpugrad_calls after filling the slots from `first` on. Returns as it does, or -2 - k if
// array k must be contiguous.
long gpugrad_call(const long* table, long end, Array* slots, char* partials, long first,
                  void* tuple, long n, const long* sizes) {
  long k = gpugrad_fill(slots + first, tuple, n, sizes);
  return k >= 0 ? -2 - k : gpugrad_calls(table, 0, end, slots, partials);
}
}
