/* Records on a fixed schedule (open loop) until SIGTERM or until all are sent, whatever happens to the brokers meanwhile:
 * how long no record was acknowledged, how late each was, how many failed. Each record is timed from the moment it was
 * due, so a stall counts against every record that it delays (coordinated omission). */
#include "load.h"
#include "histogram.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile sig_atomic_t ended;

static struct {
  struct histogram acknowledged;
  long failed;
  int64_t last_ns, longest_ns;
  atomic_bool is_done;
} state;

static void end(int number) {
  (void)number;
  ended = 1;
}

static void delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
  (void)client, (void)opaque;
  if (message->err) {
    state.failed++;
    return;
  }
  int64_t due, now = now_ns();
  memcpy(&due, message->payload, sizeof due);
  histogram_add(&state.acknowledged, now - due);
  if (state.last_ns && now - state.last_ns > state.longest_ns) state.longest_ns = now - state.last_ns;
  state.last_ns = now;
}

/* Delivery reports are served where somebody waits for them: an acknowledgement is timed when it comes. */
static void *serve(void *client) {
  while (!atomic_load(&state.is_done)) rd_kafka_poll(client, 100);
  return NULL;
}

static void wait_until(int64_t due_ns) {
  struct timespec due = {.tv_sec = due_ns / 1000000000, .tv_nsec = due_ns % 1000000000};
  while (!ended && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL)) continue;
}

static void report(const struct settings *run, long sent, double elapsed) {
  json_begin("steady", run);
  json_number("rate", run->rate);
  json_number("seconds", elapsed);
  json_integer("sent", sent);
  json_integer("failed", state.failed);
  json_integer("acknowledged", histogram_count(&state.acknowledged));
  json_number("longest_gap_s", (double)state.longest_ns / 1e9);
  json_number("acknowledged_p50_ms", histogram_ms(&state.acknowledged, .5));
  json_number("acknowledged_p99_ms", histogram_ms(&state.acknowledged, .99));
  json_number("acknowledged_p999_ms", histogram_ms(&state.acknowledged, .999));
  json_number("acknowledged_max_ms", histogram_max_ms(&state.acknowledged));
  json_end();
}

void run_steady(const struct settings *run) {
  static const char *const defaults[] = {"acks", "all", "enable.idempotence", "true", "linger.ms", "0", NULL};
  struct settings own = *run;
  if (own.size < (long)sizeof(int64_t)) own.size = sizeof(int64_t);
  sigaction(SIGTERM, &(struct sigaction){.sa_handler = end}, NULL);
  rd_kafka_t *client = new_client(&own, RD_KAFKA_PRODUCER, defaults, delivered);
  rd_kafka_topic_t *topic = know_topic(client, &own);
  char *value = calloc(1, (size_t)own.size);
  pthread_t server;
  if (pthread_create(&server, NULL, serve, client)) fail("no thread for delivery reports");
  int64_t begun = now_ns();
  long sent = 0;
  for (; sent < own.records && !ended; sent++) {
    int64_t due = begun + (int64_t)((double)sent * 1e9 / own.rate);
    wait_until(due);
    memcpy(value, &due, sizeof due);
    while (rd_kafka_produce(topic, own.partition, RD_KAFKA_MSG_F_COPY, value, (size_t)own.size, NULL, 0, NULL) && !ended)
      nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  rd_kafka_flush(client, 120000);
  atomic_store(&state.is_done, true);
  pthread_join(server, NULL);
  report(&own, sent, (double)(now_ns() - begun) / 1e9);
}
