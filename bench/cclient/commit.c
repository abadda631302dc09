/* OffsetCommit from outside of a group, one request in flight on each of some connections, on plain sockets. All commit
 * the same group, so one partition of __consumer_offsets takes them all. */
#include "load.h"
#include "histogram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_CLIENTS = 256, FRAME = 512, WARM_UP = 2000, FIND_COORDINATOR = 10, OFFSET_COMMIT = 8 };

static const char group[] = "brokerload-commits";

struct committer {
  int socket;
  size_t got;
  int64_t asked_ns;
  unsigned char answer[FRAME];
};

struct frame {
  unsigned char bytes[FRAME];
  size_t size;
  size_t offset_at; /* of the committed offset, which each request counts up */
};

static void put_number(struct frame *frame, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; i--) frame->bytes[frame->size++] = (unsigned char)(value >> (8 * i));
}

static void put_string(struct frame *frame, const char *text) {
  size_t length = strlen(text);
  if (frame->size + length + 64 > FRAME) fail("%s: too long a name", text);
  put_number(frame, length, 2);
  memcpy(frame->bytes + frame->size, text, length);
  frame->size += length;
}

static void begin(struct frame *frame, int api, int version) {
  frame->size = 4;
  put_number(frame, (uint64_t)api, 2);
  put_number(frame, (uint64_t)version, 2);
  put_number(frame, 7, 4);
  put_string(frame, "brokerload");
}

static void end(struct frame *frame) {
  uint32_t size = htonl((uint32_t)frame->size - 4);
  memcpy(frame->bytes, &size, 4);
}

static struct frame commit_frame(const struct settings *run) {
  struct frame frame;
  begin(&frame, OFFSET_COMMIT, 7);
  put_string(&frame, group);
  put_number(&frame, UINT32_MAX, 4); /* no generation */
  put_string(&frame, "");
  put_number(&frame, UINT16_MAX, 2); /* no instance id */
  put_number(&frame, 1, 4);
  put_string(&frame, run->topic);
  put_number(&frame, 1, 4);
  put_number(&frame, (uint64_t)run->partition, 4);
  frame.offset_at = frame.size;
  put_number(&frame, 0, 8);
  put_number(&frame, UINT32_MAX, 4); /* no leader epoch */
  put_string(&frame, "");
  end(&frame);
  return frame;
}

static void send_frame(struct committer *client, const struct frame *frame) {
  client->got = 0;
  client->asked_ns = now_ns();
  if (write(client->socket, frame->bytes, frame->size) != (ssize_t)frame->size) fail("write: %s", strerror(errno));
}

/* Whether the whole answer is there. */
static bool receive(struct committer *client) {
  ssize_t count = read(client->socket, client->answer + client->got, FRAME - client->got);
  if (count == 0) fail("the broker closed a connection");
  if (count < 0) fail("read: %s", strerror(errno));
  client->got += (size_t)count;
  uint32_t size;
  if (client->got < 4) return false;
  memcpy(&size, client->answer, 4);
  return client->got >= 4 + (size_t)ntohl(size);
}

/* The error of the only partition: the last two bytes of the answer. */
static int error_of(const struct committer *client) {
  return (int16_t)(client->answer[client->got - 2] << 8 | client->answer[client->got - 1]);
}

/* Asks for the coordinator, which has the topic created, and commits until it is taken. */
static void wait_for_coordinator(struct committer *client, const struct frame *commit) {
  struct frame find;
  begin(&find, FIND_COORDINATOR, 0);
  put_string(&find, group);
  end(&find);
  for (double begun = now_s(); now_s() - begun < 30;) {
    send_frame(client, &find);
    while (!receive(client)) continue;
    send_frame(client, commit);
    while (!receive(client)) continue;
    if (error_of(client) == 0) return;
    usleep(100000);
  }
  fail("no offset was committed within 30 s: error %d", error_of(client));
}

static void commit_many(struct committer *clients, const struct settings *run, struct frame *frame, long commits,
                        struct histogram *took) {
  struct pollfd waits[MOST_CLIENTS];
  long asked = 0, done = 0;
  for (int i = 0; i < run->clients; i++) {
    waits[i] = (struct pollfd){.fd = clients[i].socket, .events = POLLIN};
    if (asked++ < commits) send_frame(&clients[i], frame);
  }
  while (done < commits) {
    if (poll(waits, (nfds_t)run->clients, 10000) == 0) fail("no answer within 10 s after %ld commits", done);
    for (int i = 0; i < run->clients; i++) {
      if (!waits[i].revents || !receive(&clients[i])) continue;
      if (error_of(&clients[i])) fail("a commit failed with error %d", error_of(&clients[i]));
      if (took) histogram_add(took, now_ns() - clients[i].asked_ns);
      done++;
      if (asked++ >= commits) continue;
      uint32_t offset = htonl((uint32_t)asked);
      memcpy(frame->bytes + frame->offset_at + 4, &offset, 4);
      send_frame(&clients[i], frame);
    }
  }
}

void run_commit(const struct settings *run) {
  struct sockaddr_storage address;
  socklen_t length;
  resolve(run->bootstrap, &address, &length);
  if (run->clients < 1 || run->clients > MOST_CLIENTS) fail("-c %d: must be 1 to %d", run->clients, MOST_CLIENTS);
  struct committer *clients = calloc((size_t)run->clients, sizeof *clients);
  struct frame frame = commit_frame(run);
  for (int i = 0; i < run->clients; i++) {
    clients[i].socket = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (clients[i].socket < 0 || connect(clients[i].socket, (const struct sockaddr *)&address, length))
      fail("connect: %s", strerror(errno));
  }
  static struct histogram took;
  wait_for_coordinator(clients, &frame);
  commit_many(clients, run, &frame, WARM_UP, NULL);
  double user0, system0, user, system;
  own_cpu(&user0, &system0);
  double begun = now_s();
  commit_many(clients, run, &frame, run->records, &took);
  double elapsed = now_s() - begun;
  own_cpu(&user, &system);
  json_begin("commit", run);
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
