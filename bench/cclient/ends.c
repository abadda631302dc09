/* Transactions of one record to one partition by one producer, on a plain socket, one request in flight. What is timed is EndTxn
 * alone, from the time it is sent until it is answered: librdkafka's call has the ways between its threads in it. */
#include "frames.h"
#include "histogram.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PRODUCE = 0, FIND_COORDINATOR = 10, INIT_PRODUCER_ID = 22, ADD_PARTITIONS = 24, END_TXN = 26 };
enum { NONE = 0, CONCURRENT_TRANSACTIONS = 51, TIMEOUT_MS = 60000, WARM_UP = 100, PATIENCE_S = 30 };
enum { CRC_AT = 17, CHECKED_AT = 21, SEQUENCE_AT = 53 }; /* in a batch of records */

struct producer {
  struct link link;
  const char *id;
  int64_t producer_id, epoch;
  struct frame add, produce, end;
  size_t batch_at, error_at;
  long sent;
};

/* CRC-32C (RFC 3720, B.4), a bit at a time: of 150 bytes, and not in what is timed. */
static uint32_t checksum(const unsigned char *bytes, size_t size) {
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < size; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

/* Asks again while the coordinator or its topic is not there yet; the first error code of an answer is behind the throttle time. */
static void ask_until_there(struct producer *producer, const struct frame *frame, const char *what) {
  int error = 0;
  for (double begun = now_s(); now_s() - begun < PATIENCE_S; usleep(50000)) {
    link_ask(&producer->link, frame);
    error = (int)number_at(producer->link.answer + 12, 2);
    if (error == NONE) return;
  }
  fail("%s: error %d for %d s", what, error, PATIENCE_S);
}

static void init(struct producer *producer) {
  struct frame find, start;
  frame_begin(&find, FIND_COORDINATOR, 1);
  frame_string(&find, producer->id);
  frame_number(&find, 1, 1);
  frame_end(&find);
  ask_until_there(producer, &find, "FindCoordinator");
  frame_begin(&start, INIT_PRODUCER_ID, 0);
  frame_string(&start, producer->id);
  frame_number(&start, TIMEOUT_MS, 4);
  frame_end(&start);
  ask_until_there(producer, &start, "InitProducerId");
  producer->producer_id = number_at(producer->link.answer + 14, 8);
  producer->epoch = number_at(producer->link.answer + 22, 2);
}

static void put_varint(unsigned char *bytes, size_t *size, long value) {
  unsigned long left = (unsigned long)value << 1 ^ (unsigned long)(value >> 63);
  for (; left > 127; left >>= 7) bytes[(*size)++] = (unsigned char)(left | 128);
  bytes[(*size)++] = (unsigned char)left;
}

/* A batch of one record, whose sequence and checksum are put in later. */
static void build_batch(struct producer *producer, const struct settings *run) {
  unsigned char record[FRAME], length[10];
  size_t size = 0, length_size = 0;
  if (run->size > FRAME / 2) fail("-s %ld: must be at most %d", run->size, FRAME / 2);
  record[size++] = 0;            /* attributes */
  put_varint(record, &size, 0);  /* after the batch's time */
  put_varint(record, &size, 0);  /* after its offset */
  put_varint(record, &size, -1); /* no key */
  put_varint(record, &size, run->size);
  memset(record + size, 'x', (size_t)run->size);
  size += (size_t)run->size;
  put_varint(record, &size, 0); /* no headers */
  put_varint(length, &length_size, (long)size);
  struct frame *frame = &producer->produce;
  frame_number(frame, 61 + length_size + size, 4);
  producer->batch_at = frame->size;
  frame_number(frame, 0, 8);
  frame_number(frame, 49 + length_size + size, 4);
  frame_number(frame, UINT32_MAX, 4); /* no leader epoch */
  frame_number(frame, 2, 1);
  frame_number(frame, 0, 4);
  frame_number(frame, 0x10, 2); /* transactional */
  frame_number(frame, 0, 4);
  int64_t now = (int64_t)time(NULL) * 1000;
  frame_number(frame, (uint64_t)now, 8);
  frame_number(frame, (uint64_t)now, 8);
  frame_number(frame, (uint64_t)producer->producer_id, 8);
  frame_number(frame, (uint64_t)producer->epoch, 2);
  frame_number(frame, 0, 4);
  frame_number(frame, 1, 4);
  frame_bytes(frame, length, length_size);
  frame_bytes(frame, record, size);
}

static void build_frames(struct producer *producer, const struct settings *run) {
  frame_begin(&producer->add, ADD_PARTITIONS, 0);
  frame_string(&producer->add, producer->id);
  frame_number(&producer->add, (uint64_t)producer->producer_id, 8);
  frame_number(&producer->add, (uint64_t)producer->epoch, 2);
  frame_number(&producer->add, 1, 4);
  frame_string(&producer->add, run->topic);
  frame_number(&producer->add, 1, 4);
  frame_number(&producer->add, (uint64_t)run->partition, 4);
  frame_end(&producer->add);
  frame_begin(&producer->produce, PRODUCE, 7);
  frame_string(&producer->produce, producer->id);
  frame_number(&producer->produce, UINT16_MAX, 2); /* acks=all */
  frame_number(&producer->produce, TIMEOUT_MS, 4);
  frame_number(&producer->produce, 1, 4);
  frame_string(&producer->produce, run->topic);
  frame_number(&producer->produce, 1, 4);
  frame_number(&producer->produce, (uint64_t)run->partition, 4);
  build_batch(producer, run);
  frame_end(&producer->produce);
  producer->error_at = 8 + 4 + 2 + strlen(run->topic) + 4 + 4;
  frame_begin(&producer->end, END_TXN, 0);
  frame_string(&producer->end, producer->id);
  frame_number(&producer->end, (uint64_t)producer->producer_id, 8);
  frame_number(&producer->end, (uint64_t)producer->epoch, 2);
  frame_number(&producer->end, 1, 1);
  frame_end(&producer->end);
}

/* Until the markers of the transaction before are written, another cannot begin. */
static void add_partition(struct producer *producer) {
  int error = NONE;
  for (double begun = now_s(); now_s() - begun < PATIENCE_S; usleep(200)) {
    link_ask(&producer->link, &producer->add);
    error = link_last_error(&producer->link);
    if (error == NONE) return;
    if (error != CONCURRENT_TRANSACTIONS) break;
  }
  fail("AddPartitionsToTxn: error %d", error);
}

static void send_record(struct producer *producer) {
  unsigned char *batch = producer->produce.bytes + producer->batch_at;
  size_t size = producer->produce.size - producer->batch_at;
  put_number_at(batch + SEQUENCE_AT, (uint64_t)producer->sent++, 4);
  put_number_at(batch + CRC_AT, checksum(batch + CHECKED_AT, size - CHECKED_AT), 4);
  link_ask(&producer->link, &producer->produce);
  int error = (int)number_at(producer->link.answer + producer->error_at, 2);
  if (error) fail("Produce: error %d", error);
}

static void run_many(struct producer *producer, long count, struct histogram *took) {
  for (long i = 0; i < count; i++) {
    add_partition(producer);
    send_record(producer);
    link_ask(&producer->link, &producer->end);
    if (took) histogram_add(took, now_ns() - producer->link.asked_ns);
    int error = link_last_error(&producer->link);
    if (error) fail("EndTxn: error %d", error);
  }
}

void run_ends(const struct settings *run) {
  static struct producer producer;
  static struct histogram took;
  char id[256];
  snprintf(id, sizeof id, "%.200s-ends", run->topic);
  producer.id = id;
  link_open(&producer.link, run);
  init(&producer);
  build_frames(&producer, run);
  run_many(&producer, WARM_UP, NULL);
  double user0, system0, user, system;
  own_cpu(&user0, &system0);
  double begun = now_s();
  run_many(&producer, run->records, &took);
  double elapsed = now_s() - begun;
  own_cpu(&user, &system);
  json_begin("ends", run);
  json_integer("transactions", run->records);
  json_number("seconds", elapsed);
  json_number("commit_p50_ms", histogram_ms(&took, .5));
  json_number("commit_p99_ms", histogram_ms(&took, .99));
  json_number("client_user_s", user - user0);
  json_number("client_system_s", system - system0);
  json_end();
}
