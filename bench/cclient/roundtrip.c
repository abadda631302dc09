/* One record at a time on a fixed schedule (open loop), producer to a consumer that already waits. Each record is timed
 * from the moment it was due, so a stall counts against every record that it delays (coordinated omission). */
#include "load.h"
#include "histogram.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 300 };

/* The first bytes of each value. Number 0: warm-up, not counted. */
struct stamp {
  int64_t number, due_ns;
};

static struct {
  const struct settings *run;
  struct histogram sent, arrived, acknowledged;
  atomic_long received, warmed, failed;
  atomic_bool stop;
} state;

static void delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
  (void)client, (void)opaque;
  struct stamp stamp;
  memcpy(&stamp, message->payload, sizeof stamp);
  if (message->err) {
    atomic_fetch_add(&state.failed, 1);
  } else if (stamp.number > 0) {
    histogram_add(&state.acknowledged, now_ns() - stamp.due_ns);
  }
}

static void *consume(void *argument) {
  static const char *const defaults[] = {"group.id", "brokerload", "enable.auto.commit", "false",
                                         "fetch.min.bytes", "1", NULL};
  rd_kafka_t *client = new_client(argument, RD_KAFKA_CONSUMER, defaults, NULL);
  rd_kafka_queue_t *queue = read_partition(client, argument, RD_KAFKA_OFFSET_END);
  while (!atomic_load(&state.stop)) {
    rd_kafka_message_t *message;
    if (rd_kafka_consume_batch_queue(queue, 100, &message, 1) < 1) continue;
    int64_t now = now_ns();
    struct stamp stamp;
    if (!message->err && message->len >= sizeof stamp) {
      memcpy(&stamp, message->payload, sizeof stamp);
      if (stamp.number > 0) {
        histogram_add(&state.arrived, now - stamp.due_ns);
        atomic_fetch_add(&state.received, 1);
      } else {
        atomic_fetch_add(&state.warmed, 1);
      }
    }
    rd_kafka_message_destroy(message);
  }
  return NULL;
}

/* Sleep until shortly before the moment, then look at the clock. */
static int64_t wait_until(int64_t due_ns) {
  int64_t now;
  while ((now = now_ns()) < due_ns) {
    int64_t left = due_ns - now - 60000;
    if (left > 0) nanosleep(&(struct timespec){.tv_nsec = left < 400000 ? left : 400000}, NULL);
  }
  return now;
}

/* Delivery reports are served where somebody waits for them: an acknowledgement is timed when it comes. */
static void *serve(void *client) {
  while (!atomic_load(&state.stop)) rd_kafka_poll(client, 100);
  return NULL;
}

static void send_record(rd_kafka_topic_t *topic, char *value, struct stamp stamp) {
  memcpy(value, &stamp, sizeof stamp);
  while (rd_kafka_produce(topic, state.run->partition, RD_KAFKA_MSG_F_COPY, value, (size_t)state.run->size, NULL, 0, NULL))
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void warm_up(rd_kafka_t *client, rd_kafka_topic_t *topic, char *value) {
  /* The consumer begins at the end, so the first records may pass before it has found the end. */
  double begun = now_s();
  for (int sent = 0; sent < WARM_UP || atomic_load(&state.warmed) == 0; sent++) {
    if (now_s() - begun > 30) fail("the consumer saw no record of %s within 30 s", state.run->topic);
    send_record(topic, value, (struct stamp){0});
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
  }
  rd_kafka_flush(client, 30000);
}

static void report(double elapsed, long late, double user, double system) {
  json_begin("roundtrip", state.run);
  json_number("rate", state.run->rate);
  json_number("seconds", elapsed);
  json_integer("received", atomic_load(&state.received));
  json_integer("failed", atomic_load(&state.failed));
  json_integer("sent_late", late);
  static const struct { const char *name; double q; } points[] = {{"p50", .5}, {"p90", .9}, {"p99", .99}, {"p999", .999}};
  for (int i = 0; i < 4; i++) {
    char name[32];
    snprintf(name, sizeof name, "sent_%s_ms", points[i].name);
    json_number(name, histogram_ms(&state.sent, points[i].q));
    snprintf(name, sizeof name, "arrived_%s_ms", points[i].name);
    json_number(name, histogram_ms(&state.arrived, points[i].q));
    snprintf(name, sizeof name, "acknowledged_%s_ms", points[i].name);
    json_number(name, histogram_ms(&state.acknowledged, points[i].q));
  }
  json_number("arrived_max_ms", histogram_max_ms(&state.arrived));
  json_number("acknowledged_max_ms", histogram_max_ms(&state.acknowledged));
  json_number("client_user_s", user);
  json_number("client_system_s", system);
  json_end();
}

void run_roundtrip(const struct settings *run) {
  static const char *const defaults[] = {"acks", "all", "linger.ms", "0", NULL};
  struct settings own = *run;
  if (own.size < (long)sizeof(struct stamp)) own.size = sizeof(struct stamp);
  state.run = &own;
  rd_kafka_t *client = new_client(&own, RD_KAFKA_PRODUCER, defaults, delivered);
  rd_kafka_topic_t *topic = know_topic(client, &own);
  char *value = calloc(1, (size_t)own.size);
  pthread_t consumer, server;
  if (pthread_create(&consumer, NULL, consume, &own) || pthread_create(&server, NULL, serve, client)) fail("no thread");
  warm_up(client, topic, value);

  double user0, system0, user, system;
  own_cpu(&user0, &system0);
  int64_t begun = now_ns() + 1000000;
  long late = 0;
  for (long i = 0; i < own.records; i++) {
    int64_t due = begun + (int64_t)((double)i * 1e9 / own.rate);
    if (wait_until(due) - due > 1000000) late++;
    send_record(topic, value, (struct stamp){.number = i + 1, .due_ns = due});
    histogram_add(&state.sent, now_ns() - due);
  }
  rd_kafka_flush(client, 60000);
  for (int i = 0; i < 2000 && atomic_load(&state.received) < own.records; i++)
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  double elapsed = (double)(now_ns() - begun) / 1e9;
  own_cpu(&user, &system);
  atomic_store(&state.stop, true);
  pthread_join(consumer, NULL);
  pthread_join(server, NULL);
  report(elapsed, late, user - user0, system - system0);
}
