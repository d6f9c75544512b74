// Sorts rows of words by their bits from `low` on; the bits below are in order already.
#include "array.h"

#include <cstdint>
#include <cstring>
#include <vector>

static const int DIGIT = 11;  // bits of a pass: its counts stay in the first cache

extern "C" void gpugrad_sort_words(void* words, long rows, long n, long low) {
  uint64_t* row = (uint64_t*)array_of(words).data;
  std::vector<uint64_t> spare(n);
  for (long r = 0; r < rows; ++r, row += n) {
    uint64_t *from = row, *to = spare.data();
    for (int shift = low; shift < 64; shift += DIGIT) {
      const uint64_t most = (1 << DIGIT) - 1;
      long places[most + 1] = {};
      for (long i = 0; i < n; ++i)
        ++places[from[i] >> shift & most];
      for (long k = 0, before = 0; k <= (long)most; ++k) {
        const long count = places[k];
        places[k] = before, before += count;
      }
      for (long i = 0; i < n; ++i)
        to[places[from[i] >> shift & most]++] = from[i];
      uint64_t* other = from;
      from = to, to = other;
    }
    if (from != row)
      memcpy(row, from, n * sizeof(uint64_t));
  }
}
