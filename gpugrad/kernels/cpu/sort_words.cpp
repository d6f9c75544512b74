// Sorts rows of random words, none of them twice: by their highest bits, and the few that have these
// in common by comparing them.
#include "array.h"

#include <cstdint>
#include <cstring>
#include <vector>

static const int DIGIT = 11;  // bits of a pass: its counts stay in the first cache
static const uint64_t MOST = (1 << DIGIT) - 1;

static void pass(const uint64_t* from, uint64_t* to, long n, int shift) {
  long places[MOST + 1] = {};
  for (long i = 0; i < n; ++i)
    ++places[from[i] >> shift & MOST];
  for (long k = 0, before = 0; k <= (long)MOST; ++k) {
    const long count = places[k];
    places[k] = before, before += count;
  }
  for (long i = 0; i < n; ++i)
    to[places[from[i] >> shift & MOST]++] = from[i];
}

static void insert(uint64_t* row, long n) {
  for (long i = 1; i < n; ++i) {
    const uint64_t word = row[i];
    long at = i;
    for (; at > 0 && row[at - 1] > word; --at)
      row[at] = row[at - 1];
    row[at] = word;
  }
}

extern "C" void gpugrad_sort_words(void* words, long rows, long n) {
  uint64_t* row = (uint64_t*)array_of(words).data;
  std::vector<uint64_t> spare(n);
  const int passes = n >> 2 * DIGIT ? 4 : 2;
  for (long r = 0; r < rows; ++r, row += n) {
    for (int p = passes; p > 0; p -= 2) {
      pass(row, spare.data(), n, 64 - p * DIGIT);
      pass(spare.data(), row, n, 64 - (p - 1) * DIGIT);
    }
    insert(row, n);
  }
}
