/* A log-linear histogram of nanoseconds: 128 steps in each power of two, so every value is exact to within 0.8 %.
   HdrHistogram's C library would do the same: Debian 12 has no package of it, and the clients vendor nothing. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

enum { STEP_BITS = 7, STEPS = 1 << STEP_BITS, POWERS = 40 };

struct histogram {
  uint64_t counts[POWERS * STEPS];
  uint64_t total;
  int64_t sum, max;
};

void histogram_add(struct histogram *h, int64_t nanoseconds);

/* The value below or at which the fraction `q` of the values lies, in milliseconds; 0 when empty. */
double histogram_ms(const struct histogram *h, double q);

#endif
