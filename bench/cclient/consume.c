/* Records from the beginning of a partition, handed out by librdkafka in batches, timed from the first batch on: how long
 * librdkafka takes to begin (5 ms or 500, by its own timers) says nothing of the broker. */
#include "load.h"

#include <stdlib.h>

enum { MOST = 1000, PATIENCE_MS = 20000, STEP_MS = 100 };

void run_consume(const struct settings *run) {
  /* A queue that is full makes librdkafka pause for a second; these keep it from ever being full. */
  static const char *const defaults[] = {"group.id", "brokerload", "enable.auto.commit", "false",
                                         "auto.offset.reset", "earliest", "fetch.min.bytes", "1",
                                         "queued.min.messages", "10000000", "queued.max.messages.kbytes", "2097151", NULL};
  rd_kafka_t *client = new_client(run, RD_KAFKA_CONSUMER, defaults, NULL);
  know_topic(client, run);
  rd_kafka_message_t **messages = calloc(MOST, sizeof *messages);
  double user0, system0, user, system;
  own_cpu(&user0, &system0);
  double begun = now_s();
  rd_kafka_queue_t *queue = read_partition(client, run, RD_KAFKA_OFFSET_BEGINNING);
  long got = 0, bytes = 0;
  double first = 0;
  for (int idle_ms = 0; got < run->records;) {
    /* The call waits until it has all it was asked for, so it is never asked for more than is left. */
    size_t wanted = run->records - got < MOST ? (size_t)(run->records - got) : MOST;
    ssize_t count = rd_kafka_consume_batch_queue(queue, STEP_MS, messages, wanted);
    if (count <= 0 && (idle_ms += STEP_MS) > PATIENCE_MS) fail("only %ld of %ld records came", got, run->records);
    for (ssize_t i = 0; i < count; i++) {
      if (!messages[i]->err) {
        if (got == 0) first = now_s();
        got++;
        bytes += (long)messages[i]->len;
      } else if (messages[i]->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        fail("consume %s: %s", run->topic, rd_kafka_message_errstr(messages[i]));
      }
      rd_kafka_message_destroy(messages[i]);
    }
    if (count > 0) idle_ms = 0;
  }
  double ended = now_s();
  own_cpu(&user, &system);
  json_begin("consume", run);
  json_number("seconds", ended - first);
  json_number("first_record_s", first - begun);
  json_integer("received", got);
  json_integer("bytes", bytes);
  json_number("client_user_s", user - user0);
  json_number("client_system_s", system - system0);
  json_end();
}
