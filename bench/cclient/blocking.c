/* See blocking.h. */
#include "blocking.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

double run_workers(const struct settings *run, struct worker *workers, void *(*work)(void *)) {
  if (run->clients < 1 || run->clients > MOST_WORKERS) fail("-c %d: must be 1 to %d", run->clients, MOST_WORKERS);
  pthread_t threads[MOST_WORKERS];
  double begun = now_s();
  for (int i = 0; i < run->clients; i++) {
    workers[i].run = run;
    workers[i].share = run->records / run->clients + (i < run->records % run->clients);
    resolve(run->bootstrap, &workers[i].address, &workers[i].length);
    if (pthread_create(&threads[i], NULL, work, &workers[i])) fail("no thread could be started");
  }
  for (int i = 0; i < run->clients; i++) pthread_join(threads[i], NULL);
  return now_s() - begun;
}

void print_workers(const char *load, const struct settings *run, const struct worker *workers, double seconds) {
  double user, system;
  own_cpu(&user, &system);
  static struct histogram took;
  for (int i = 0; i < run->clients; i++) histogram_merge(&took, &workers[i].took);
  json_begin(load, run);
  json_integer("clients", run->clients);
  json_number("seconds", seconds);
  json_number("p50_ms", histogram_ms(&took, .5));
  json_number("p99_ms", histogram_ms(&took, .99));
  json_number("client_user_s", user);
  json_number("client_system_s", system);
}

const char *property(const struct settings *run, const char *name, const char *otherwise) {
  for (int i = 0; i < run->property_count; i++)
    if (strcmp(run->properties[i][0], name) == 0) return run->properties[i][1];
  return otherwise;
}

void open_connection(struct connection *connection, const struct worker *worker) {
  connection->tls = NULL;
  connection->socket = socket(worker->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection->socket < 0) fail("socket: %s", strerror(errno));
  if (connect(connection->socket, (const struct sockaddr *)&worker->address, worker->length)) fail("connect: %s", strerror(errno));
  int on = 1;
  setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void close_connection(struct connection *connection) {
  if (connection->tls) {
    SSL_shutdown(connection->tls);
    SSL_free(connection->tls);
  }
  close(connection->socket);
}

void put_integer(struct message *message, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; i--) message->bytes[message->size++] = (unsigned char)(value >> (8 * i));
}

void put_bytes(struct message *message, const void *bytes, size_t size) {
  if (message->size + size > MOST_FRAME) fail("a request of more than %d bytes", MOST_FRAME);
  memcpy(message->bytes + message->size, bytes, size);
  message->size += size;
}

void begin_request(struct message *message, int api, int version) {
  message->size = 4;
  put_integer(message, (uint64_t)api, 2);
  put_integer(message, (uint64_t)version, 2);
  put_integer(message, 7, 4);
  put_integer(message, 0xffff, 2); /* no client id */
}

static void move(struct connection *connection, unsigned char *bytes, size_t size, bool out) {
  while (size) {
    ssize_t count;
    if (connection->tls)
      count = out ? SSL_write(connection->tls, bytes, (int)size) : SSL_read(connection->tls, bytes, (int)size);
    else
      count = out ? write(connection->socket, bytes, size) : read(connection->socket, bytes, size);
    if (count <= 0) fail("the broker closed a connection before it answered");
    bytes += count;
    size -= (size_t)count;
  }
}

void exchange(struct connection *connection, struct message *request, struct message *answer) {
  uint32_t size = htonl((uint32_t)request->size - 4);
  memcpy(request->bytes, &size, 4);
  move(connection, request->bytes, request->size, true);
  move(connection, (unsigned char *)&size, 4, false);
  answer->size = ntohl(size);
  if (answer->size < 4 || answer->size > MOST_FRAME) fail("an answer of %zu bytes", answer->size);
  move(connection, answer->bytes, answer->size, false);
  answer->size -= 4;
  memmove(answer->bytes, answer->bytes + 4, answer->size);
}
