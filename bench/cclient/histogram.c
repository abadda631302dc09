/* See histogram.h. Values below 128 have a place each; above, the place is the power of two and the next seven bits. */
#include "histogram.h"

static int place_of(uint64_t value) {
  if (value < STEPS) return (int)value;
  int shift = 63 - __builtin_clzll(value) - STEP_BITS;
  int place = (shift + 1) * STEPS + (int)((value >> shift) & (STEPS - 1));
  return place < POWERS * STEPS ? place : POWERS * STEPS - 1;
}

static double middle_of(int place) {
  if (place < STEPS) return place;
  int shift = place / STEPS - 1;
  return ((double)(STEPS + place % STEPS) + 0.5) * (double)(1ull << shift);
}

void histogram_add(struct histogram *h, int64_t nanoseconds) {
  if (nanoseconds < 0) nanoseconds = 0;
  h->counts[place_of((uint64_t)nanoseconds)]++;
  h->total++;
  h->sum += nanoseconds;
  if (nanoseconds > h->max) h->max = nanoseconds;
}

double histogram_ms(const struct histogram *h, double q) {
  uint64_t wanted = (uint64_t)(q * (double)h->total), seen = 0;
  if (wanted >= h->total && h->total > 0) wanted = h->total - 1;
  for (int place = 0; place < POWERS * STEPS; place++) {
    seen += h->counts[place];
    if (seen > wanted) return middle_of(place) / 1e6;
  }
  return 0;
}
