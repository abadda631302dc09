/* Connections that open, ask ApiVersions, read the answer and close, some at a time, on plain sockets. */
#include "load.h"
#include "histogram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_CLIENTS = 256, ANSWER = 65536 };

/* ApiVersions version 0, correlation id 7, no client id. */
static const unsigned char request[] = {0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff};

struct client {
  int socket;
  bool asked;
  size_t got;
  int64_t begun;
  unsigned char answer[ANSWER];
};

static void open_client(struct client *client, const struct sockaddr_storage *address, socklen_t length) {
  client->begun = now_ns();
  client->asked = false;
  client->got = 0;
  client->socket = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (client->socket < 0) fail("socket: %s", strerror(errno));
  if (connect(client->socket, (const struct sockaddr *)address, length) && errno != EINPROGRESS)
    fail("connect: %s", strerror(errno));
}

/* Whether the whole answer is there. */
static bool serve_client(struct client *client) {
  if (!client->asked) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(client->socket, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error) fail("connect: %s", strerror(error));
    if (write(client->socket, request, sizeof request) != sizeof request) fail("write: %s", strerror(errno));
    client->asked = true;
    return false;
  }
  ssize_t count = read(client->socket, client->answer + client->got, ANSWER - client->got);
  if (count == 0) fail("the broker closed a connection before it answered");
  if (count < 0) {
    if (errno == EAGAIN) return false;
    fail("read: %s", strerror(errno));
  }
  client->got += (size_t)count;
  if (client->got < 4) return false;
  uint32_t size;
  memcpy(&size, client->answer, 4);
  return client->got >= 4 + (size_t)ntohl(size);
}

void run_connections(const struct settings *run) {
  struct sockaddr_storage address;
  socklen_t length;
  resolve(run->bootstrap, &address, &length);
  if (run->clients < 1 || run->clients > MOST_CLIENTS) fail("-c %d: must be 1 to %d", run->clients, MOST_CLIENTS);
  struct client *clients = calloc((size_t)run->clients, sizeof *clients);
  struct pollfd waits[MOST_CLIENTS];
  static struct histogram took;
  double user0, system0, user, system;
  own_cpu(&user0, &system0);
  double begun = now_s();
  long opened = 0, done = 0;
  for (int i = 0; i < run->clients; i++) clients[i].socket = -1;
  while (done < run->records) {
    for (int i = 0; i < run->clients; i++) {
      if (clients[i].socket < 0 && opened < run->records) {
        open_client(&clients[i], &address, length);
        opened++;
      }
      waits[i] = (struct pollfd){.fd = clients[i].socket, .events = clients[i].asked ? POLLIN : POLLOUT};
    }
    if (poll(waits, (nfds_t)run->clients, 10000) == 0) fail("no answer within 10 s after %ld connections", done);
    for (int i = 0; i < run->clients; i++) {
      if (clients[i].socket < 0 || !waits[i].revents || !serve_client(&clients[i])) continue;
      close(clients[i].socket);
      histogram_add(&took, now_ns() - clients[i].begun);
      clients[i].socket = -1;
      done++;
    }
  }
  double elapsed = now_s() - begun;
  own_cpu(&user, &system);
  json_begin("connections", run);
  json_integer("clients", run->clients);
  json_number("seconds", elapsed);
  json_number("p50_ms", histogram_ms(&took, .5));
  json_number("p99_ms", histogram_ms(&took, .99));
  json_number("max_ms", histogram_max_ms(&took));
  json_number("client_user_s", user - user0);
  json_number("client_system_s", system - system0);
  json_end();
  free(clients);
}
