/* See histogram.h. */
#include "histogram.h"

#include <hdr_histogram.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t HOUR = 3600ll * 1000 * 1000 * 1000;
enum { DIGITS = 3 };

void histogram_add(struct histogram *h, int64_t nanoseconds) {
  if (!h->values && hdr_init(1, HOUR, DIGITS, &h->values)) {
    fputs("no memory for a histogram\n", stderr);
    exit(1);
  }
  if (nanoseconds < 0) nanoseconds = 0;
  hdr_record_value(h->values, nanoseconds < HOUR ? nanoseconds : HOUR);
}

void histogram_merge(struct histogram *h, const struct histogram *other) {
  if (!other->values) return;
  if (!h->values) histogram_add(h, 0), hdr_reset(h->values);
  hdr_add(h->values, other->values);
}

double histogram_ms(const struct histogram *h, double q) {
  return h->values ? (double)hdr_value_at_percentile(h->values, q * 100) / 1e6 : 0;
}

double histogram_max_ms(const struct histogram *h) { return h->values ? (double)hdr_max(h->values) / 1e6 : 0; }

int64_t histogram_count(const struct histogram *h) { return h->values ? h->values->total_count : 0; }
