/* OffsetCommit from outside of a group, one request in flight on each of some connections, on plain sockets. All commit
 * the same group, so one partition of __consumer_offsets takes them all. */
#include "frames.h"
#include "histogram.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_CLIENTS = 256, WARM_UP = 2000, FIND_COORDINATOR = 10, OFFSET_COMMIT = 8 };

static const char group[] = "brokerload-commits";

/* `offset_at`: of the committed offset, which each request counts up. */
static struct frame commit_frame(const struct settings *run, size_t *offset_at) {
  struct frame frame;
  frame_begin(&frame, OFFSET_COMMIT, 7);
  frame_string(&frame, group);
  frame_number(&frame, UINT32_MAX, 4); /* no generation */
  frame_string(&frame, "");
  frame_number(&frame, UINT16_MAX, 2); /* no instance id */
  frame_number(&frame, 1, 4);
  frame_string(&frame, run->topic);
  frame_number(&frame, 1, 4);
  frame_number(&frame, (uint64_t)run->partition, 4);
  *offset_at = frame.size;
  frame_number(&frame, 0, 8);
  frame_number(&frame, UINT32_MAX, 4); /* no leader epoch */
  frame_string(&frame, "");
  frame_end(&frame);
  return frame;
}

/* Asks for the coordinator, which has the topic created, and commits until it is taken. */
static void wait_for_coordinator(struct link *client, const struct frame *commit) {
  struct frame find;
  frame_begin(&find, FIND_COORDINATOR, 0);
  frame_string(&find, group);
  frame_end(&find);
  for (double begun = now_s(); now_s() - begun < 30;) {
    link_ask(client, &find);
    link_ask(client, commit);
    if (link_last_error(client) == 0) return;
    usleep(100000);
  }
  fail("no offset was committed within 30 s: error %d", link_last_error(client));
}

static void commit_many(struct link *clients, const struct settings *run, struct frame *frame, size_t offset_at, long commits,
                        struct histogram *took) {
  struct pollfd waits[MOST_CLIENTS];
  long asked = 0, done = 0;
  for (int i = 0; i < run->clients; i++) {
    waits[i] = (struct pollfd){.fd = clients[i].socket, .events = POLLIN};
    if (asked++ < commits) link_send(&clients[i], frame);
  }
  while (done < commits) {
    if (poll(waits, (nfds_t)run->clients, 10000) == 0) fail("no answer within 10 s after %ld commits", done);
    for (int i = 0; i < run->clients; i++) {
      if (!waits[i].revents || !link_receive(&clients[i])) continue;
      if (link_last_error(&clients[i])) fail("a commit failed with error %d", link_last_error(&clients[i]));
      if (took) histogram_add(took, now_ns() - clients[i].asked_ns);
      done++;
      if (asked++ >= commits) continue;
      put_number_at(frame->bytes + offset_at, (uint64_t)asked, 8);
      link_send(&clients[i], frame);
    }
  }
}

void run_commit(const struct settings *run) {
  if (run->clients < 1 || run->clients > MOST_CLIENTS) fail("-c %d: must be 1 to %d", run->clients, MOST_CLIENTS);
  struct link *clients = calloc((size_t)run->clients, sizeof *clients);
  size_t offset_at;
  struct frame frame = commit_frame(run, &offset_at);
  for (int i = 0; i < run->clients; i++) link_open(&clients[i], run);
  static struct histogram took;
  wait_for_coordinator(clients, &frame);
  commit_many(clients, run, &frame, offset_at, WARM_UP, NULL);
  double user0, system0, user, system;
  own_cpu(&user0, &system0);
  double begun = now_s();
  commit_many(clients, run, &frame, offset_at, run->records, &took);
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
