// What a CUDA graph reads and the host has: numbers, and arrays that lie elsewhere. Numbers and
// addresses come by value, with the arguments of the launch, so the host may write the next ones at
// once, and nothing waits. At the end of the graph results are copied to where they stay: the graph
// is the same for all launches, so it finds on the device where that is.

constexpr int ROOM = 480;  // words: 3840 of the 4096 bytes that the arguments of a kernel may have

struct Words {
  unsigned long long at[ROOM];
};

// The first words are numbers, written to `to`; from word `jobs` on are `copies` of three: where an
// array is, where it goes unless `into` says so, and its bytes.
__global__ void put(const __grid_constant__ Words given, unsigned long long* to,
                    const unsigned long long* into, int numbers, int jobs, int copies) {
  const long long thread = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  const long long threads = gridDim.x * (long long)blockDim.x;
  for (long long i = thread; i < numbers; i += threads) to[i] = given.at[i];
  for (int k = 0; k < copies; ++k) {
    const unsigned long long* job = given.at + jobs + 3 * k;
    const unsigned long long from = job[0], place = into ? into[k] : job[1];
    const long long bytes = (long long)job[2];
    if (((from | place | job[2]) & 15) == 0) {
      typedef Pack<int, 4> Sixteen;
      for (long long i = thread; i < bytes / 16; i += threads)
        ((Sixteen*)place)[i] = ((const Sixteen*)from)[i];
    } else {
      for (long long i = thread; i < bytes; i += threads) ((char*)place)[i] = ((const char*)from)[i];
    }
  }
}
