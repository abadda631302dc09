/* librdkafka clients, made alike for every load. */
#include "load.h"

#include <string.h>

/* Keys that librdkafka knows for one kind of client only; it warns about them on the other. */
static bool fits(rd_kafka_type_t type, const char *key) {
  static const char *const producer[] = {"acks", "batch.", "compression", "delivery.", "enable.idempotence", "linger.", "message.timeout", "queue.buffering.", "request.required", "sticky."};
  static const char *const consumer[] = {"check.crcs", "fetch.", "max.partition", "queued."};
  const char *const *others = type == RD_KAFKA_PRODUCER ? consumer : producer;
  size_t count = type == RD_KAFKA_PRODUCER ? sizeof consumer / sizeof *consumer : sizeof producer / sizeof *producer;
  for (size_t i = 0; i < count; i++)
    if (strncmp(key, others[i], strlen(others[i])) == 0) return false;
  return true;
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value) {
  char error[256];
  if (rd_kafka_conf_set(conf, key, value, error, sizeof error) != RD_KAFKA_CONF_OK) fail("%s=%s: %s", key, value, error);
}

rd_kafka_t *new_client(const struct settings *run, rd_kafka_type_t type, const char *const *defaults,
                       void (*delivered)(rd_kafka_t *, const rd_kafka_message_t *, void *)) {
  char error[256];
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", run->bootstrap);
  for (; *defaults; defaults += 2) set(conf, defaults[0], defaults[1]);
  for (int i = 0; i < run->property_count; i++)
    if (fits(type, run->properties[i][0])) set(conf, run->properties[i][0], run->properties[i][1]);
  if (delivered) rd_kafka_conf_set_dr_msg_cb(conf, delivered);
  rd_kafka_t *client = rd_kafka_new(type, conf, error, sizeof error);
  if (!client) fail("librdkafka: %s", error);
  return client;
}

rd_kafka_topic_t *know_topic(rd_kafka_t *client, const struct settings *run) {
  const struct rd_kafka_metadata *metadata;
  rd_kafka_topic_t *topic = rd_kafka_topic_new(client, run->topic, NULL);
  rd_kafka_resp_err_t error = rd_kafka_metadata(client, 0, topic, &metadata, 10000);
  if (error) fail("metadata of %s at %s: %s", run->topic, run->bootstrap, rd_kafka_err2str(error));
  rd_kafka_metadata_destroy(metadata);
  return topic;
}

rd_kafka_queue_t *read_partition(rd_kafka_t *consumer, const struct settings *run, int64_t offset) {
  rd_kafka_poll_set_consumer(consumer);
  rd_kafka_topic_partition_list_t *partitions = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(partitions, run->topic, run->partition)->offset = offset;
  rd_kafka_resp_err_t error = rd_kafka_assign(consumer, partitions);
  rd_kafka_topic_partition_list_destroy(partitions);
  if (error) fail("assign %s-%d: %s", run->topic, run->partition, rd_kafka_err2str(error));
  return rd_kafka_queue_get_consumer(consumer);
}
