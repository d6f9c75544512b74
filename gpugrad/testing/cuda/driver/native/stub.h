// A function of one of NVIDIA's libraries that Python implements. The registers and the stack of
// the call are passed on, whatever the function's parameters are (System V and ARM calling
// conventions: eight integers, eight floating-point numbers, then the stack).
#include <stdio.h>

void* gpugrad_resolve(const char* library, const char* symbol);
int gpugrad_has_ended(void);

typedef long word;
#define WORDS word a, word b, word c, word d, word e, word f, word g, word h
#define REALS double p, double q, double r, double s, double t, double u, double v, double w
#define STACK word s0, word s1, word s2, word s3, word s4, word s5, word s6, word s7, word s8, \
  word s9, word s10, word s11, word s12, word s13, word s14, word s15
typedef word (*function)(WORDS, REALS, STACK);

#define STUB(library, name) \
  word name(WORDS, REALS, STACK) { \
    static function known; \
    if (gpugrad_has_ended()) return 0; \
    if (!known) known = (function)gpugrad_resolve(library, #name); \
    return known(a, b, c, d, e, f, g, h, p, q, r, s, t, u, v, w, s0, s1, s2, s3, s4, s5, s6, s7, \
                 s8, s9, s10, s11, s12, s13, s14, s15); \
  }
