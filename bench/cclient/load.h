/* What the parts of brokerload share: the settings of one run, clocks, and the output.
 *
 * brokerload runs one round of one kind of load and prints one line of JSON; its caller chooses rounds, turns and
 * brokers, and reads the broker's own cost. */
#ifndef LOAD_H
#define LOAD_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdint.h>
#include <sys/socket.h>

struct settings {
  const char *bootstrap; /* host:port */
  const char *topic;
  const char *directory; /* write, copy: where files are made */
  int partition;
  long records;
  long size;    /* bytes of a record's value; write, copy: bytes in all are records * size */
  double rate;  /* roundtrip, steady: records a second; quiet: requests a second */
  int clients;  /* connections, commit, transactions: so many at a time; quiet: quiet connections */
  long each;    /* transactions: records of each */
  int aborted_percent; /* transactions: so many of a hundred are aborted */
  const char *quiet_file, *storm_file; /* quiet: frames that quiet connections ask, and the one of the storm */
  int storm_clients, depth;            /* quiet: connections of the storm, and requests in flight on each; transactions: partitions */
  bool newcomers;                      /* quiet: who asks the first frame opens a connection for it */
  const char *properties[64][2]; /* librdkafka's, over ours */
  int property_count;
};

/* Ends the program with a message and status 1. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The address of a bootstrap server, HOST:PORT. */
void resolve(const char *bootstrap, struct sockaddr_storage *address, socklen_t *length);

/* Seconds of a clock that only goes forward; nanoseconds of the same. */
double now_s(void);
int64_t now_ns(void);

/* Seconds of user and system time that this process has used. */
void own_cpu(double *user_s, double *system_s);

/* A client with the properties of the run over `defaults` (name, value, ..., NULL). */
rd_kafka_t *new_client(const struct settings *run, rd_kafka_type_t type, const char *const *defaults,
                       void (*delivered)(rd_kafka_t *, const rd_kafka_message_t *, void *));

/* Have the topic's metadata and a connection before anything is timed; librdkafka looks for leaders every 500 ms only. */
rd_kafka_topic_t *know_topic(rd_kafka_t *client, const struct settings *run);

/* A consumer that reads the run's partition from an offset (RD_KAFKA_OFFSET_BEGINNING, _END), and its queue. */
rd_kafka_queue_t *read_partition(rd_kafka_t *consumer, const struct settings *run, int64_t offset);

/* Parts of the line of JSON: begin, members, end. */
void json_begin(const char *load, const struct settings *run);
void json_number(const char *name, double value);
void json_integer(const char *name, long long value);
void json_end(void);

/* The loads. */
void run_produce(const struct settings *run);
void run_consume(const struct settings *run);
void run_roundtrip(const struct settings *run);
void run_connections(const struct settings *run);
void run_commit(const struct settings *run);
void run_quiet(const struct settings *run);
void run_write(const struct settings *run);
void run_sink(const struct settings *run);
void run_steady(const struct settings *run);
void run_copy(const struct settings *run);
void run_seal(const struct settings *run);
void run_handshakes(const struct settings *run);
void run_logins(const struct settings *run);
void run_transactions(const struct settings *run);
void run_ends(const struct settings *run);

#endif
