/* Records as fast as librdkafka takes them, timed from the first call to the last acknowledgement. */
#include "load.h"

#include <stdlib.h>

static struct {
  long acknowledged, failed;
  rd_kafka_resp_err_t first_error;
} outcome;

static void delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
  (void)client, (void)opaque;
  if (!message->err) {
    outcome.acknowledged++;
  } else if (outcome.failed++ == 0) {
    outcome.first_error = message->err;
  }
}

void run_produce(const struct settings *run) {
  static const char *const defaults[] = {"acks", "all", "linger.ms", "5", "batch.size", "1000000",
                                         "batch.num.messages", "1000000", "queue.buffering.max.messages", "2000000",
                                         "queue.buffering.max.kbytes", "1048576", NULL};
  rd_kafka_t *client = new_client(run, RD_KAFKA_PRODUCER, defaults, delivered);
  rd_kafka_topic_t *topic = know_topic(client, run);
  char *value = malloc((size_t)run->size);
  unsigned state = 1;
  for (long i = 0; i < run->size; i++) value[i] = (char)('A' + (state = state * 1103515245 + 12345) / 65536 % 26);
  double user0, system0, user, system;
  own_cpu(&user0, &system0);
  double begun = now_s();
  for (long sent = 0; sent < run->records;) {
    if (rd_kafka_produce(topic, run->partition, RD_KAFKA_MSG_F_COPY, value, (size_t)run->size, NULL, 0, NULL) == 0) {
      if (++sent % 1024 == 0) rd_kafka_poll(client, 0);
    } else if (rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      rd_kafka_poll(client, 5);
    } else {
      fail("produce to %s: %s", run->topic, rd_kafka_err2str(rd_kafka_last_error()));
    }
  }
  rd_kafka_flush(client, 120000);
  double elapsed = now_s() - begun;
  own_cpu(&user, &system);
  if (outcome.acknowledged != run->records)
    fail("%ld of %ld records acknowledged, %ld failed (%s)", outcome.acknowledged, run->records, outcome.failed, rd_kafka_err2str(outcome.first_error));
  json_begin("produce", run);
  json_number("seconds", elapsed);
  json_integer("acknowledged", outcome.acknowledged);
  json_number("client_user_s", user - user0);
  json_number("client_system_s", system - system0);
  json_end();
  rd_kafka_topic_destroy(topic);
  rd_kafka_destroy(client);
  free(value);
}
