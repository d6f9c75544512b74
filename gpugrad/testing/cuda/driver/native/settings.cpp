#include <stdlib.h>
#include <string.h>

#include "driver.h"

namespace gpu {

static long from_environment(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text && *text ? atol(text) : otherwise;
}

#define SETTING(variable, name, otherwise) \
  Setting variable = {name, from_environment("GPUGRAD_CUDA_" name, otherwise)}

SETTING(devices, "DEVICES", 2);
SETTING(memory, "MEMORY", 80l << 30);       // bytes of each device
SETTING(peers, "PEERS", 1);                 // whether devices can access each other's memory
SETTING(late, "LATE", 0);                   // whether work waits until something waits for it
SETTING(null_work, "NULL_WORK", 0);         // whether devices do nothing; 2: but copy from the host
SETTING(logging, "LOG", 0);                // whether launches are logged

static Setting* all[] = {&devices, &memory, &peers, &late, &null_work, &logging};

}  // namespace gpu

EXPORT long gpugrad_get(const char* name) {
  for (gpu::Setting* s : gpu::all)
    if (!strcmp(s->name, name)) return s->value;
  return -1;
}

EXPORT int gpugrad_set(const char* name, long value) {
  for (gpu::Setting* s : gpu::all)
    if (!strcmp(s->name, name)) return s->value = value, 0;
  return 1;
}
