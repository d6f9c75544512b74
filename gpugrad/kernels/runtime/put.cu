// Copies the inputs of a CUDA graph to its fixed addresses: numbers of the host, and arrays that are
// elsewhere. Numbers and addresses are passed by value with the launch, so the host may write the
// next ones immediately without waiting. At the end of a graph, results are copied to where they
// stay. The graph is the same for all launches, so it reads those addresses from the device.

constexpr int ROOM = 480;  // words: 3840 of the 4096 bytes of a kernel's arguments

struct Words {
  unsigned long long at[ROOM];
};

// The first words are numbers, which go to `to`. From word `jobs` on there are `copies` of three
// words: source address, destination address (unless `into` has it), and number of bytes.
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
