/* Nanoseconds in a histogram of HdrHistogram's C library, exact to three digits. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

struct hdr_histogram;

/* Zeroed memory is an empty histogram. */
struct histogram {
  struct hdr_histogram *values;
};

/* Counts a value; one below zero as zero, one above an hour as an hour. */
void histogram_add(struct histogram *h, int64_t nanoseconds);

/* Counts what another has counted. */
void histogram_merge(struct histogram *h, const struct histogram *other);

/* The value below or at which the fraction `q` of the values lies, in milliseconds; 0 when empty. */
double histogram_ms(const struct histogram *h, double q);

/* The largest value, in milliseconds; 0 when empty. */
double histogram_max_ms(const struct histogram *h);

/* How many values there are. */
int64_t histogram_count(const struct histogram *h);

#endif
