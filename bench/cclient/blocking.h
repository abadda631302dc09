/* Requests one after the other on a blocking connection, plain or by TLS, from several threads. */
#ifndef BLOCKING_H
#define BLOCKING_H

#include "histogram.h"
#include "load.h"

#include <openssl/ssl.h>

enum { MOST_WORKERS = 64, MOST_FRAME = 65536 };

struct connection {
  int socket;
  SSL *tls; /* NULL: plain */
};

/* A request being written, an answer being read. */
struct message {
  size_t size;
  unsigned char bytes[MOST_FRAME];
};

struct worker {
  const struct settings *run;
  long share; /* of the run's records */
  struct histogram took;
  struct sockaddr_storage address;
  socklen_t length;
  void *state; /* the load's own */
};

/* Share the run's records among `run->clients` threads; returns the seconds until the last has ended. */
double run_workers(const struct settings *run, struct worker *workers, void *(*work)(void *));

/* Join what the workers measured into the line of JSON. */
void print_workers(const char *load, const struct settings *run, const struct worker *workers, double seconds);

/* The value of a property of the run, or `otherwise`. */
const char *property(const struct settings *run, const char *name, const char *otherwise);

void open_connection(struct connection *connection, const struct worker *worker);
void close_connection(struct connection *connection);

/* A request: its head, members, then the exchange, which leaves the answer's bytes behind its correlation id. */
void begin_request(struct message *message, int api, int version);
void put_integer(struct message *message, uint64_t value, int bytes);
void put_bytes(struct message *message, const void *bytes, size_t size);
void exchange(struct connection *connection, struct message *request, struct message *answer);

#endif
