/* Quiet connections that ask a small request now and then, beside a storm: some clients that repeat a large one.
 *
 * The quiet requests have a fixed rate (open loop): each is due at a time that depends on no answer, and its wait counts
 * from then. A thread of its own sends the storm's request and reads every answer, so that neither waits for the other.
 * Requests are whole frames in files, made by the caller. */
#include "load.h"
#include "histogram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { MOST_FRAMES = 4, MOST_WAITING = 64, PATIENCE_S = 20, EVENTS = 256, CHUNK = 1 << 20 };

struct frame {
  unsigned char *bytes;
  size_t size;
};

/* Answers of one connection, of which only the sizes are looked at. */
struct answers {
  unsigned char head[4];
  size_t head_got, body_left;
};

struct quiet {
  int socket; /* -1: a newcomer that is not there */
  bool connecting;
  struct answers answers;
  int64_t due[MOST_WAITING]; /* of the requests without an answer, the oldest first */
  int first, waiting;
};

struct storm {
  const struct settings *run;
  struct frame frame;
  atomic_bool ends;
  struct histogram took;
  long long answers, bytes;
};

static int read_frames(const char *path, struct frame *frames, int most) {
  FILE *file = fopen(path, "rb");
  if (!file) fail("%s: %s", path, strerror(errno));
  int count = 0;
  uint32_t size;
  while (fread(&size, 4, 1, file) == 1) {
    if (count == most) fail("%s: more than %d frames", path, most);
    struct frame *frame = &frames[count++];
    frame->size = 4 + (size_t)ntohl(size);
    frame->bytes = malloc(frame->size);
    if (!frame->bytes) fail("%s: no memory", path);
    memcpy(frame->bytes, &size, 4);
    if (fread(frame->bytes + 4, 1, frame->size - 4, file) != frame->size - 4) fail("%s: a frame is cut", path);
  }
  fclose(file);
  if (!count) fail("%s: no frame", path);
  return count;
}

/* Returns how many answers ended within these bytes. */
static int take(struct answers *state, const unsigned char *bytes, size_t count) {
  int ended = 0;
  while (count) {
    if (!state->body_left) {
      state->head[state->head_got++] = *bytes++, count--;
      if (state->head_got < 4) continue;
      uint32_t size;
      memcpy(&size, state->head, 4);
      state->body_left = ntohl(size);
      state->head_got = 0;
      continue;
    }
    size_t part = count < state->body_left ? count : state->body_left;
    bytes += part, count -= part, state->body_left -= part;
    if (!state->body_left) ended++;
  }
  return ended;
}

static int open_socket(const struct sockaddr_storage *address, socklen_t length, bool waits) {
  int one = 1, made = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK), 0);
  if (made < 0) fail("socket: %s", strerror(errno));
  setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(made, (const struct sockaddr *)address, length) && (waits || errno != EINPROGRESS))
    fail("connect: %s", strerror(errno));
  if (waits) fcntl(made, F_SETFL, fcntl(made, F_GETFL) | O_NONBLOCK);
  return made;
}

/* The storm's thread: each client keeps as many requests in flight as -P says, and reads every answer. */
static void *run_clients(void *of) {
  struct storm *storm = of;
  int clients = storm->run->storm_clients, depth = storm->run->depth;
  struct sockaddr_storage address;
  socklen_t length;
  resolve(storm->run->bootstrap, &address, &length);
  struct pollfd *waits = calloc((size_t)clients, sizeof *waits);
  struct answers *answers = calloc((size_t)clients, sizeof *answers);
  size_t *sent = calloc((size_t)clients, sizeof *sent);
  int *in_flight = calloc((size_t)clients, sizeof *in_flight);
  int64_t *begun = calloc((size_t)clients, sizeof *begun);
  unsigned char *buffer = malloc(CHUNK);
  for (int i = 0; i < clients; i++) waits[i].fd = open_socket(&address, length, true), begun[i] = now_ns();
  while (!atomic_load(&storm->ends)) {
    for (int i = 0; i < clients; i++) waits[i].events = POLLIN | (in_flight[i] < depth ? POLLOUT : 0);
    if (poll(waits, (nfds_t)clients, 50) <= 0) continue;
    for (int i = 0; i < clients; i++) {
      if (waits[i].revents & POLLOUT) {
        ssize_t count = write(waits[i].fd, storm->frame.bytes + sent[i], storm->frame.size - sent[i]);
        if (count < 0 && errno != EAGAIN) fail("the storm cannot write: %s", strerror(errno));
        if (count > 0 && (sent[i] += (size_t)count) == storm->frame.size) sent[i] = 0, in_flight[i]++;
      }
      if (!(waits[i].revents & (POLLIN | POLLHUP | POLLERR))) continue;
      ssize_t count = read(waits[i].fd, buffer, CHUNK);
      if (count == 0) fail("the broker closed a connection of the storm after %lld answers", storm->answers);
      if (count < 0 && errno != EAGAIN) fail("the storm cannot read: %s", strerror(errno));
      if (count <= 0) continue;
      storm->bytes += count;
      for (int ended = take(&answers[i], buffer, (size_t)count); ended > 0; ended--) {
        int64_t now = now_ns();
        histogram_add(&storm->took, now - begun[i]);
        begun[i] = now, storm->answers++, in_flight[i]--;
      }
    }
  }
  for (int i = 0; i < clients; i++) close(waits[i].fd);
  free(waits), free(answers), free(sent), free(in_flight), free(begun), free(buffer);
  return NULL;
}

static void send_quiet(struct quiet *quiet, const struct frame *frame) {
  ssize_t count = write(quiet->socket, frame->bytes, frame->size);
  if (count != (ssize_t)frame->size) fail("a quiet connection cannot write: %s", strerror(errno));
}

static void watch(int epoll, int how, struct quiet *quiet, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = quiet};
  if (epoll_ctl(epoll, how, quiet->socket, &event)) fail("epoll_ctl: %s", strerror(errno));
}

static void read_quiet(struct quiet *quiet, struct histogram *waited, long *unanswered, unsigned char *buffer) {
  ssize_t count = read(quiet->socket, buffer, CHUNK);
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) fail("the broker closed a quiet connection: %s", count ? strerror(errno) : "end of stream");
  int64_t now = now_ns();
  for (int ended = take(&quiet->answers, buffer, (size_t)count); ended > 0; ended--) {
    if (!quiet->waiting) fail("an answer that nobody asked for");
    histogram_add(waited, now - quiet->due[quiet->first]);
    quiet->first = (quiet->first + 1) % MOST_WAITING, quiet->waiting--, --*unanswered;
  }
}

/* Asks once and waits: what was opened before is accepted then, and no queue of the listener overflows. */
static void settle(int socket, const struct frame *frame, unsigned char *buffer) {
  struct answers answers = {0};
  struct pollfd wait = {.fd = socket, .events = POLLIN};
  if (write(socket, frame->bytes, frame->size) != (ssize_t)frame->size) fail("a quiet connection cannot write: %s", strerror(errno));
  for (int ended = 0; !ended;) {
    if (poll(&wait, 1, PATIENCE_S * 1000) <= 0) fail("no answer within %d s before the storm", PATIENCE_S);
    ssize_t count = read(socket, buffer, CHUNK);
    if (count <= 0) fail("the broker closed a quiet connection before the storm");
    ended = take(&answers, buffer, (size_t)count);
  }
}

static void report(const struct settings *run, int kinds, struct histogram *waited, const struct histogram *late,
                   const struct storm *storm, long unanswered, double elapsed) {
  char name[32];
  json_begin("quiet", run);
  json_integer("clients", run->clients);
  json_number("seconds", elapsed);
  for (int kind = 0; kind < kinds; kind++) {
    snprintf(name, sizeof name, "quiet%d_p50_ms", kind), json_number(name, histogram_ms(&waited[kind], .5));
    snprintf(name, sizeof name, "quiet%d_p99_ms", kind), json_number(name, histogram_ms(&waited[kind], .99));
    snprintf(name, sizeof name, "quiet%d_max_ms", kind), json_number(name, histogram_max_ms(&waited[kind]));
    snprintf(name, sizeof name, "quiet%d_count", kind), json_integer(name, histogram_count(&waited[kind]));
  }
  json_integer("unanswered", unanswered);
  json_number("late_p99_ms", histogram_ms(late, .99));
  json_number("late_max_ms", histogram_max_ms(late));
  json_integer("storm_answers", storm->answers);
  json_integer("storm_bytes", storm->bytes);
  json_number("storm_p50_ms", histogram_ms(&storm->took, .5));
  json_number("storm_max_ms", histogram_max_ms(&storm->took));
  json_end();
}

void run_quiet(const struct settings *run) {
  static struct histogram waited[MOST_FRAMES], late;
  static struct storm storm;
  struct frame frames[MOST_FRAMES];
  if (run->clients < 1 || !run->quiet_file || run->depth < 1) fail("quiet: -q FILE, -c and -P of at least 1");
  int kinds = read_frames(run->quiet_file, frames, MOST_FRAMES);
  storm.run = run;
  if (run->storm_file) read_frames(run->storm_file, &storm.frame, 1);
  struct sockaddr_storage address;
  socklen_t length;
  resolve(run->bootstrap, &address, &length);
  int epoll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  struct epoll_event tick = {.events = EPOLLIN, .data.ptr = NULL}, events[EVENTS];
  epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &tick);
  struct quiet *all = calloc((size_t)run->clients, sizeof *all);
  unsigned char *buffer = malloc(CHUNK);
  for (int i = 0; i < run->clients; i++) {
    /* With -O those that ask the first frame are newcomers: each request opens a connection, and closes it. */
    bool newcomer = run->newcomers && i % kinds == 0;
    all[i].socket = newcomer ? -1 : open_socket(&address, length, true);
    if (newcomer) continue;
    if (i % 32 == 31) settle(all[i].socket, &frames[i % kinds], buffer);
    watch(epoll, EPOLL_CTL_ADD, &all[i], EPOLLIN);
  }
  pthread_t thread;
  if (run->storm_file && pthread_create(&thread, NULL, run_clients, &storm)) fail("pthread_create failed");
  int64_t begun = now_ns(), step = (int64_t)(1e9 / run->rate), end = begun + run->records * 1000000LL;
  int64_t next = begun + step;
  long asked = 0, unanswered = 0;
  while (next < end || unanswered) {
    int64_t now = now_ns();
    if (now > end + PATIENCE_S * 1000000000LL) {
      /* They have waited so long at least. */
      for (int i = 0; i < run->clients; i++)
        for (int j = 0; j < all[i].waiting; j++)
          histogram_add(&waited[i % kinds], now - all[i].due[(all[i].first + j) % MOST_WAITING]);
      break;
    }
    for (; next <= now && next < end; next += step) {
      struct quiet *quiet = &all[asked % run->clients];
      int kind = (int)(asked++ % run->clients) % kinds;
      if (quiet->waiting == MOST_WAITING || (run->newcomers && kind == 0 && quiet->socket >= 0)) continue;
      histogram_add(&late, now - next);
      quiet->due[(quiet->first + quiet->waiting++) % MOST_WAITING] = next, unanswered++;
      if (quiet->socket >= 0) {
        send_quiet(quiet, &frames[kind]);
      } else {
        quiet->socket = open_socket(&address, length, false), quiet->connecting = true;
        watch(epoll, EPOLL_CTL_ADD, quiet, EPOLLOUT);
      }
    }
    int64_t until = next < end ? next : now + 100000000;
    struct itimerspec at = {.it_value = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
    int ready = epoll_wait(epoll, events, EVENTS, -1);
    for (int i = 0; i < ready; i++) {
      struct quiet *quiet = events[i].data.ptr;
      uint64_t expired;
      if (!quiet) {
        if (read(timer, &expired, sizeof expired) < 0 && errno != EAGAIN) fail("timerfd: %s", strerror(errno));
        continue;
      }
      int kind = (int)(quiet - all) % kinds;
      if (quiet->connecting) {
        quiet->connecting = false;
        watch(epoll, EPOLL_CTL_MOD, quiet, EPOLLIN);
        send_quiet(quiet, &frames[kind]);
        continue;
      }
      read_quiet(quiet, &waited[kind], &unanswered, buffer);
      if (run->newcomers && kind == 0 && !quiet->waiting) close(quiet->socket), quiet->socket = -1;
    }
  }
  double elapsed = (double)(now_ns() - begun) / 1e9;
  atomic_store(&storm.ends, true);
  if (run->storm_file) pthread_join(thread, NULL);
  report(run, kinds, waited, &late, &storm, unanswered, elapsed);
}
